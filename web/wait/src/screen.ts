// Decides what the page shows. Does not access the page.

import type { LineState, Status, Ticket } from "../../../sdk/js/src/index.js";
import { formatEta, type Messages } from "./i18n.js";

export type Kind = "joining" | "waiting" | "still" | "turn" | "ended" | "outside" | "missing";

export interface Screen {
  kind: Kind;
  headline: string;
  text: string;
  /** The position, while the ticket waits. */
  place?: { position: number; ahead: number; behind: number; eta: string };
}

export function screenFor(ticket: Ticket, messages: Messages): Screen {
  if (ticket.status === "ENTERABLE") {
    const text = ticket.entryUrl ? messages.turnWait : messages.turnNoAddress;
    return { kind: "turn", headline: messages.turnHead, text };
  }
  return ticket.status === "WAITING" ? waiting(ticket, messages) : ended(ticket.status, messages);
}

function waiting(ticket: Ticket, messages: Messages): Screen {
  const { position, waitingCount, etaSeconds, lineState } = ticket;
  const moves = lineState === "OPEN";
  const eta = moves ? formatEta(messages, etaSeconds) : messages.etaStill;
  const place = { position, ahead: position - 1, behind: Math.max(0, waitingCount - position), eta };
  const open = { headline: position === 1 ? messages.nextHead : messages.waitingHead, text: messages.waitingText };
  return { kind: moves ? "waiting" : "still", ...(moves ? open : haltedText(lineState, messages)), place };
}

function haltedText(state: LineState, messages: Messages): { headline: string; text: string } {
  switch (state) {
    case "SOLD_OUT":
      return { headline: messages.soldOutHead, text: messages.soldOutText };
    case "DISABLED":
      return { headline: messages.disabledHead, text: messages.disabledText };
    case "RECOVERING":
      return { headline: messages.recoveringHead, text: messages.recoveringText };
    case "PAUSED":
      return { headline: messages.pausedHead, text: messages.pausedText };
    default:
      // `HELD`, and every state of a newer server.
      return { headline: messages.heldHead, text: messages.heldText };
  }
}

function ended(status: Status, messages: Messages): Screen {
  const texts: Partial<Record<Status, [string, string]>> = {
    EXPIRED: [messages.expiredHead, messages.expiredText],
    COMPLETED: [messages.completedHead, messages.completedText],
    ABANDONED: [messages.abandonedHead, messages.abandonedText],
    REPLACED: [messages.replacedHead, messages.replacedText],
  };
  const [headline, text] = texts[status] ?? [messages.leftHead, messages.leftText];
  return { kind: "ended", headline, text };
}

/** States in which joins are refused. In every other state a join may succeed. */
const CLOSED_STATES: Record<string, string> = { SOLD_OUT: "SOLD_OUT", DISABLED: "QUEUE_DISABLED", SCHEDULED: "NOT_OPEN_YET", CLOSED: "LINE_CLOSED" };

/** Returns the problem code of a join in this state; `null` if it may succeed. */
export const refusalIn = (state: LineState): string | null => CLOSED_STATES[state] ?? null;

/** Returns the screen for a failed join, by the code and the status of the problem; the status is 0 if the server is unreachable. */
export function joinErrorScreen(code: string, status: number, messages: Messages): Screen {
  switch (code) {
    case "SOLD_OUT":
      return { kind: "outside", headline: messages.soldOutHead, text: messages.soldOutOutside };
    case "QUEUE_DISABLED":
    case "NOT_OPEN_YET":
    case "LINE_CLOSED":
      return { kind: "outside", headline: messages.disabledHead, text: messages.disabledOutside };
    case "ITEM_NOT_FOUND":
    case "INVALID_REQUEST":
      return { kind: "missing", headline: messages.missingHead, text: messages.missingText };
    case "LINE_FULL":
      return { kind: "outside", headline: messages.fullHead, text: messages.fullText };
    case "STORE_FULL":
      return { kind: "outside", headline: messages.busyHead, text: messages.busyText };
    case "RATE_LIMITED":
      return { kind: "outside", headline: messages.limitedHead, text: messages.limitedText };
    default:
      return status >= 400 && status < 500
        ? { kind: "outside", headline: messages.refusedHead, text: messages.refusedText }
        : { kind: "outside", headline: messages.troubleHead, text: messages.troubleText };
  }
}
