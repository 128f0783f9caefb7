// What the page shows, decided in one place and without a page.

import type { LineState, Status, Ticket } from "../../../sdk/js/src/index.js";
import { etaWords, type Words } from "./words.js";

export type Kind = "joining" | "waiting" | "still" | "turn" | "ended" | "outside" | "missing";

export interface Scene {
  kind: Kind;
  headline: string;
  text: string;
  /** Where the person stands, while they wait. */
  place?: { position: number; ahead: number; behind: number; eta: string };
}

export function sceneOf(ticket: Ticket, words: Words): Scene {
  if (ticket.status === "ENTERABLE") {
    const text = ticket.entryUrl ? words.turnWait : words.turnNoAddress;
    return { kind: "turn", headline: words.turnHead, text };
  }
  return ticket.status === "WAITING" ? waiting(ticket, words) : ended(ticket.status, words);
}

function waiting(ticket: Ticket, words: Words): Scene {
  const { position, waitingCount, etaSeconds, lineState } = ticket;
  const moves = lineState === "OPEN";
  const eta = moves ? etaWords(words, etaSeconds) : words.etaStill;
  const place = { position, ahead: position - 1, behind: Math.max(0, waitingCount - position), eta };
  const open = { headline: position === 1 ? words.nextHead : words.waitingHead, text: words.waitingText };
  return { kind: moves ? "waiting" : "still", ...(moves ? open : stillness(lineState, words)), place };
}

function stillness(state: LineState, words: Words): { headline: string; text: string } {
  switch (state) {
    case "SOLD_OUT":
      return { headline: words.soldOutHead, text: words.soldOutText };
    case "DISABLED":
      return { headline: words.disabledHead, text: words.disabledText };
    case "RECOVERING":
      return { headline: words.recoveringHead, text: words.recoveringText };
    case "PAUSED":
      return { headline: words.pausedHead, text: words.pausedText };
    default:
      // `HELD`, and every state of a newer server.
      return { headline: words.heldHead, text: words.heldText };
  }
}

function ended(status: Status, words: Words): Scene {
  const told: Partial<Record<Status, [string, string]>> = {
    EXPIRED: [words.expiredHead, words.expiredText],
    COMPLETED: [words.completedHead, words.completedText],
    ABANDONED: [words.abandonedHead, words.abandonedText],
    REPLACED: [words.replacedHead, words.replacedText],
  };
  const [headline, text] = told[status] ?? [words.leftHead, words.leftText];
  return { kind: "ended", headline, text };
}

/** States in which a line takes no newcomers. Every other state is worth an attempt to join. */
const CLOSED_STATES: Record<string, string> = { SOLD_OUT: "SOLD_OUT", DISABLED: "QUEUE_DISABLED", SCHEDULED: "NOT_OPEN_YET", CLOSED: "LINE_CLOSED" };

/** The code that a join would get in this state; `null` if it may succeed. */
export const refusalIn = (state: LineState): string | null => CLOSED_STATES[state] ?? null;

/** For a person who could not join, by the code and the status of the problem; 0 if the server did not answer. */
export function outside(code: string, status: number, words: Words): Scene {
  switch (code) {
    case "SOLD_OUT":
      return { kind: "outside", headline: words.soldOutHead, text: words.soldOutOutside };
    case "QUEUE_DISABLED":
    case "NOT_OPEN_YET":
    case "LINE_CLOSED":
      return { kind: "outside", headline: words.disabledHead, text: words.disabledOutside };
    case "ITEM_NOT_FOUND":
    case "INVALID_REQUEST":
      return { kind: "missing", headline: words.missingHead, text: words.missingText };
    case "LINE_FULL":
      return { kind: "outside", headline: words.fullHead, text: words.fullText };
    case "STORE_FULL":
      return { kind: "outside", headline: words.busyHead, text: words.busyText };
    case "RATE_LIMITED":
      return { kind: "outside", headline: words.limitedHead, text: words.limitedText };
    default:
      return status >= 400 && status < 500
        ? { kind: "outside", headline: words.refusedHead, text: words.refusedText }
        : { kind: "outside", headline: words.troubleHead, text: words.troubleText };
  }
}
