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

/** Estimated wait in seconds: half of the users wait less than `p50`. */
export interface Eta {
  p50: number;
  p90: number;
}

/** A ticket and its current state. */
export interface Ticket {
  itemId: string;
  userId: string;
  /** The only proof of the position: store it. */
  token: string;
  status: Status;
  /** 1 for the first in line; 0 unless the ticket waits. */
  position: number;
  waitingCount: number;
  lineState: LineState;
  etaSeconds: Eta | null;
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
}

/** The operator's texts on the waiting page. */
export interface PageTexts {
  /** Identifies this version of the texts. */
  revision: string;
  /** The displayed name. */
  name: string;
  message: string | null;
}

/** Returns whether the status is final. */
export function isFinal(status: Status): boolean {
  return status !== "WAITING" && status !== "ENTERABLE";
}
