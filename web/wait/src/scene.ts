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
    default:
      return { headline: words.pausedHead, text: words.pausedText };
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

/** For somebody who could not join, by the code of the problem. */
export function outside(code: string, words: Words): Scene {
  switch (code) {
    case "SOLD_OUT":
      return { kind: "outside", headline: words.soldOutHead, text: words.soldOutOutside };
    case "QUEUE_DISABLED":
      return { kind: "outside", headline: words.disabledHead, text: words.disabledOutside };
    case "ITEM_NOT_FOUND":
    case "INVALID_REQUEST":
      return { kind: "missing", headline: words.missingHead, text: words.missingText };
    default:
      return { kind: "outside", headline: words.troubleHead, text: words.troubleText };
  }
}
