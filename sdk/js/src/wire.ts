// The JSON of the contract, as /openapi.json describes it.

export type Status =
  | "WAITING"
  | "ENTERABLE"
  | "EXPIRED"
  | "COMPLETED"
  | "LEFT"
  | "ABANDONED"
  | "REPLACED";

/**
 * `SCHEDULED`: the lobby is not open yet, and joins are refused. `LOBBY`: joins are accepted, and no ticket is admitted before
 * the opening. `CLOSED`: the line has closed for good; no ticket is admitted. A newer server may send states that are not
 * listed here: show them as a line that does not move.
 */
export type LineState =
  | "SCHEDULED"
  | "LOBBY"
  | "OPEN"
  | "PAUSED"
  | "SOLD_OUT"
  | "DISABLED"
  | "RECOVERING"
  | "HELD"
  | "CLOSED"
  | (string & {});

/** How the tickets of the lobby are ordered at the opening. */
export type OpeningOrder = "arrival" | "draw";

/** Estimated wait in seconds: half of the users wait less than `p50`, one of ten less than `p10`. */
export interface Eta {
  /** Absent in responses of an older server. */
  p10?: number;
  p50: number;
  p90: number;
}

/** How much is left for a waiting ticket, and whether it will be enough. */
export interface StockAhead {
  /** How much of the stock no admitted user holds. */
  left: number;
  /** How many tickets are served before this one. */
  ahead: number;
  /** `UNCERTAIN` and `UNLIKELY`: it depends on how many admitted users do not buy. */
  chance: "ENOUGH" | "UNCERTAIN" | "UNLIKELY" | (string & {});
}

/** A ticket and its current state. */
export interface Ticket {
  itemId: string;
  userId: string;
  /** The only proof of the position: store it. */
  token: string;
  status: Status;
  /** 1 for the first in line; 0 unless the ticket waits; `null` in the lobby of a draw, which decides it. */
  position: number | null;
  waitingCount: number;
  lineState: LineState;
  /** When the line opens or opened (RFC 3339); `null` if it has no opening, or an operator opens it. */
  opensAt: string | null;
  /** Milliseconds from this response to the opening by the server's clock; `null` unless the ticket waits in a lobby with a set time. */
  opensInMs: number | null;
  /** The round of drand's quicknet on which the order of the lobby depends; `null` without one, and unless the ticket waits in a lobby. */
  beaconRound: number | null;
  /**
   * Whether the draw has begun: the users of the lobby are known, and the line opens in `opensInMs`, when the round is published;
   * that is `null` if the round is late. Users who join now stand behind them.
   */
  drawing: boolean;
  /** The rank that the draw gave to this ticket, from 1; `null` before the draw and for tickets that took no part. */
  cohortRank: number | null;
  /** The lane of the ticket; `null` in the standard lane. Position, count and estimate are those of the lane. */
  lane: string | null;
  etaSeconds: Eta | null;
  /** `null` unless the ticket waits in a line that moves and whose stock limits the entries; absent in responses of an older server. */
  stockAhead?: StockAhead | null;
  pollAfterMs: number;
  /** The pass, a JWT, once the ticket is admitted. */
  pass: string | null;
  passExpiresAt: string | null;
  entryUrl: string | null;
}

/** The public view of a line. */
export interface Line {
  itemId: string;
  itemName: string;
  lineState: LineState;
  waitingCount: number;
  enteredCount: number;
  admittedPerSecond: number;
  /** The opening; all of these are `null` for a line without one. Times are RFC 3339. */
  opensAt: string | null;
  /** Milliseconds from this response to the opening by the server's clock; `null` after it, or if an operator opens the line. */
  opensInMs: number | null;
  lobbyAt: string | null;
  /** Milliseconds from this response to the lobby by the server's clock; `null` once the lobby is open. */
  lobbyInMs: number | null;
  closesAt: string | null;
  order: OpeningOrder | null;
  /** The round of drand's quicknet on which the order of the lobby depends, if there is one. */
  beaconRound: number | null;
  /** Whether the draw has begun, as in a ticket. */
  drawing: boolean;
  /** The lanes, the standard lane first; empty for a line without lanes. */
  lanes: LaneView[];
}

/** A lane: users with an invitation wait in a lane with positions and a share of the rate of its own. */
export interface LaneView {
  /** `standard` for users without an invitation. */
  name: string;
  waitingCount: number;
  /** The share of the rate in percent while tickets wait in every lane; `null` for a lane that is served first. */
  sharePercent: number | null;
  /** Whether the lane is served before all lanes with a share. */
  first: boolean;
}

/** The operator's texts on the waiting page, in the default language and in others. */
export interface PageTexts extends LocalTexts {
  /** Identifies this version of the texts. */
  revision: string;
  /** The texts of the languages in which the operator wrote one, by language tag such as `ko`. */
  languages?: Record<string, LocalTexts>;
}

/** The operator's texts in one language. */
export interface LocalTexts {
  /** The displayed name. */
  name: string;
  /** May have several lines. */
  message: string | null;
  links?: PageLinks;
}

/** Where users whose wait is over can go, by the state in which the page shows it. */
export interface PageLinks {
  completed: PageLink | null;
  soldOut: PageLink | null;
  closed: PageLink | null;
  /** For tickets that ended in another way. */
  home: PageLink | null;
}

/** A link; `label` is `null` for the page's own text. */
export interface PageLink {
  url: string;
  label: string | null;
}

/** Returns whether the status is final. */
export function isFinal(status: Status): boolean {
  return status !== "WAITING" && status !== "ENTERABLE";
}
