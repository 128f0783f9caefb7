// Decides what the page shows. Does not access the page.

import type { BlockedNotice, Eta, Line, LineState, PageLinks, Status, Ticket } from "../../../sdk/js/src/index.js";
import type { Messages } from "./i18n.js";

export type Kind = "joining" | "scheduled" | "lobby" | "waiting" | "still" | "closed" | "turn" | "ended" | "outside" | "missing";

/** What the countdown counts down to. */
export interface NextEvent {
  kind: "lobby" | "opening";
  /** RFC 3339. */
  at: string;
  /** Milliseconds from now, by the server's clock. */
  inMs: number;
  /** When the line opens, if the countdown ends at the lobby. */
  opensAt?: string;
}

export interface Screen {
  kind: Kind;
  headline: string;
  text: string;
  /** The position, while the ticket waits. */
  place?: { position: number; ahead: number; behind: number; eta: string };
  /** How much is left: a text with slots for the numbers. */
  stock?: { text: string; left: number; ahead: number };
  /** The next event, before an opening with a set time. */
  next?: NextEvent;
  /** The number of people in the lobby, and the position by arrival; `null` if a draw decides it. */
  lobby?: { position: number | null; count: number };
  /** Where a blocked user can complain. */
  contactUrl?: string;
  /** Which of the operator's links is shown. */
  link?: keyof PageLinks;
  /** The text of the button that joins again, or loads a page without a line again. */
  again?: string;
}

/** Formats an estimate. */
export type FormatEta = (eta: Eta | null) => string;

/** Returns the screen for a ticket. `isNewDraw`: the result of its draw was not shown yet. */
export function screenFor(ticket: Ticket, messages: Messages, formatEta: FormatEta, isNewDraw = false): Screen {
  if (ticket.status === "ENTERABLE") {
    const text = ticket.entryUrl ? messages.turnWait : messages.turnNoAddress;
    return { kind: "turn", headline: messages.turnHead, text };
  }
  if (ticket.status !== "WAITING") return ended(ticket.status, messages);
  const screen = waiting(ticket, messages, formatEta);
  return isNewDraw && screen.kind === "waiting" ? { ...screen, headline: messages.drawnHead } : screen;
}

function waiting(ticket: Ticket, messages: Messages, formatEta: FormatEta): Screen {
  const { position, waitingCount, etaSeconds, lineState } = ticket;
  if (lineState === "LOBBY" || lineState === "SCHEDULED") return lobby(ticket, messages);
  if (lineState === "CLOSED") return { kind: "closed", headline: messages.closedHead, text: messages.closedText, link: "closed" };
  // The line was stopped before the draw.
  if (position === null) return { kind: "still", ...haltedText(lineState, messages) };
  const moves = lineState === "OPEN";
  const eta = moves ? formatEta(etaSeconds) : messages.etaStill;
  const place = { position, ahead: position - 1, behind: Math.max(0, waitingCount - position), eta };
  const open = { headline: position === 1 ? messages.nextHead : messages.waitingHead, text: messages.waitingText };
  const stock = moves ? stockText(ticket, messages) : undefined;
  return { kind: moves ? "waiting" : "still", ...(moves ? open : haltedText(lineState, messages)), place, ...(stock && { stock }) };
}

function stockText({ stockAhead }: Ticket, messages: Messages): Screen["stock"] {
  if (!stockAhead) return undefined;
  const { left, ahead, chance } = stockAhead;
  const text = chance === "ENOUGH" ? messages.stockEnough : chance === "UNLIKELY" ? messages.stockUnlikely : messages.stockUncertain;
  return { text, left, ahead };
}

function lobby({ position, waitingCount, opensAt, opensInMs, beaconRound, drawing }: Ticket, messages: Messages): Screen {
  if (drawing) {
    return { kind: "lobby", headline: messages.drawingHead, text: messages.drawingText, lobby: { position, count: waitingCount } };
  }
  const draw = beaconRound ? `${messages.lobbyDraw} ${messages.lobbyBeacon}` : messages.lobbyDraw;
  const text = position === null ? draw : messages.lobbyArrival;
  const screen: Screen = { kind: "lobby", headline: messages.lobbyHead, text, lobby: { position, count: waitingCount } };
  if (opensAt && typeof opensInMs === "number") return { ...screen, next: { kind: "opening", at: opensAt, inMs: opensInMs } };
  return { ...screen, text: `${messages.lobbySoon} ${text}` };
}

/** Returns the screen for a line that accepts no joins in its state. */
export function outsideScreen(line: Line, messages: Messages): Screen {
  if (line.lineState !== "SCHEDULED") return joinErrorScreen(refusalIn(line.lineState) ?? "", 409, messages);
  const screen = joinErrorScreen("NOT_OPEN_YET", 409, messages);
  const draw = line.beaconRound ? `${messages.scheduledDraw} ${messages.lobbyBeacon}` : messages.scheduledDraw;
  const text = line.order === "draw" ? `${draw} ${screen.text}` : screen.text;
  const next = nextEvent(line);
  return { ...screen, text, ...(next && { next }) };
}

function nextEvent({ lobbyAt, lobbyInMs, opensAt, opensInMs }: Line): NextEvent | null {
  if (lobbyAt && typeof lobbyInMs === "number") {
    return { kind: "lobby", at: lobbyAt, inMs: lobbyInMs, ...(opensAt && { opensAt }) };
  }
  return opensAt && typeof opensInMs === "number" ? { kind: "opening", at: opensAt, inMs: opensInMs } : null;
}

function haltedText(state: LineState, messages: Messages): Pick<Screen, "headline" | "text" | "link"> {
  switch (state) {
    case "SOLD_OUT":
      return { headline: messages.soldOutHead, text: messages.soldOutText, link: "soldOut" };
    case "DISABLED":
      return { headline: messages.disabledHead, text: messages.disabledText, link: "closed" };
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
  return { kind: "ended", headline, text, link: status === "COMPLETED" ? "completed" : "home", again: messages.joinAgain };
}

/** States in which joins are refused. In every other state a join may succeed. */
const CLOSED_STATES: Record<string, string> = { SOLD_OUT: "SOLD_OUT", DISABLED: "QUEUE_DISABLED", SCHEDULED: "NOT_OPEN_YET", CLOSED: "LINE_CLOSED" };

/** Returns the problem code of a join in this state; `null` if it may succeed. */
export const refusalIn = (state: LineState): string | null => CLOSED_STATES[state] ?? null;

/** Returns the screen of a blocked user. The notice is missing if another tab received the problem. */
export function blockedScreen(notice: BlockedNotice | null, messages: Messages): Screen {
  const screen: Screen = { kind: "outside", headline: messages.blockedHead, text: messages.blockedText };
  if (!notice) return screen;
  const text = `${notice.reason} ${messages.blockedText} ${messages.blockedRule} ${notice.rule}`;
  return { ...screen, text, ...(notice.contactUrl !== null && { contactUrl: notice.contactUrl }) };
}

/** Returns the screen for a failed join, by the code and the status of the problem; the status is 0 if the server is unreachable. */
export function joinErrorScreen(code: string, status: number, messages: Messages): Screen {
  switch (code) {
    case "SOLD_OUT":
      return { kind: "outside", headline: messages.soldOutHead, text: messages.soldOutOutside, link: "soldOut" };
    case "QUEUE_DISABLED":
      return { kind: "outside", headline: messages.disabledHead, text: messages.disabledOutside, link: "closed" };
    case "NOT_OPEN_YET":
      return { kind: "scheduled", headline: messages.scheduledHead, text: messages.scheduledText };
    case "LINE_CLOSED":
      return { kind: "outside", headline: messages.closedOutsideHead, text: messages.closedOutside, link: "closed" };
    case "ITEM_NOT_FOUND":
    case "INVALID_REQUEST":
      return { kind: "missing", headline: messages.missingHead, text: messages.missingText, again: messages.tryAgain };
    case "LINE_FULL":
      return { kind: "outside", headline: messages.fullHead, text: messages.fullText };
    case "STORE_FULL":
      return { kind: "outside", headline: messages.busyHead, text: messages.busyText };
    case "INVALID_IDENTITY":
      return { kind: "outside", headline: messages.identityHead, text: messages.identityText };
    case "RATE_LIMITED":
      return { kind: "outside", headline: messages.limitedHead, text: messages.limitedText };
    default:
      return status >= 400 && status < 500
        ? { kind: "outside", headline: messages.refusedHead, text: messages.refusedText }
        : { kind: "outside", headline: messages.troubleHead, text: messages.troubleText };
  }
}
