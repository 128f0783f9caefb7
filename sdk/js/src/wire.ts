// The JSON of the contract, as /openapi.json describes it.

export type Status =
  | "WAITING"
  | "ENTERABLE"
  | "EXPIRED"
  | "COMPLETED"
  | "LEFT"
  | "ABANDONED"
  | "REPLACED";

/** A newer server may send states that are not listed here: show them as a line that does not move. */
export type LineState = "OPEN" | "PAUSED" | "SOLD_OUT" | "DISABLED" | "RECOVERING" | "HELD" | (string & {});

/** When the turn will probably come, in seconds: for half of the people sooner than `p50`. */
export interface Eta {
  p50: number;
  p90: number;
}

/** A place in a line and what there is to know about it now. */
export interface Ticket {
  itemId: string;
  userId: string;
  /** The only proof of the place: keep it. */
  token: string;
  status: Status;
  /** 1 for the first in line; 0 for everybody who does not wait. */
  position: number;
  waitingCount: number;
  lineState: LineState;
  etaSeconds: Eta | null;
  pollAfterMs: number;
  /** The proof of entry, a JWT, once it is the person's turn. */
  pass: string | null;
  passExpiresAt: string | null;
  entryUrl: string | null;
}

/** A line, as everybody may see it. */
export interface Line {
  itemId: string;
  itemName: string;
  lineState: LineState;
  waitingCount: number;
  enteredCount: number;
  admittedPerSecond: number;
}

/** The texts that the operator put on the waiting page. */
export interface PageTexts {
  /** Names this version of the texts. */
  revision: string;
  /** The name on the page. */
  name: string;
  message: string | null;
}

/** Whether nothing can follow. */
export function isFinal(status: Status): boolean {
  return status !== "WAITING" && status !== "ENTERABLE";
}
