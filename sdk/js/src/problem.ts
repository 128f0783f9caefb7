// Errors of the waiting room: RFC 9457 problems with a stable code.

import type { Challenge, Widget } from "./challenge.js";

export type ProblemCode =
  | "INVALID_REQUEST"
  | "INVALID_TOKEN"
  | "INVALID_IDENTITY"
  | "TOKEN_MISMATCH"
  | "BLOCKED"
  | "INVALID_CODE"
  | "CHALLENGE_REQUIRED"
  | "ITEM_NOT_FOUND"
  | "SOLD_OUT"
  | "QUEUE_DISABLED"
  | "NOT_OPEN_YET"
  | "LINE_CLOSED"
  | "LINE_RESTARTED"
  | "LINE_FULL"
  | "RATE_LIMITED"
  | "UNAVAILABLE"
  | "STORE_FULL"
  | (string & {});

/** The times of a line that is not open yet: members of the problem `NOT_OPEN_YET`, RFC 3339. */
export interface OpeningTimes {
  opensAt: string | null;
  lobbyAt: string | null;
}

/** Why a user is blocked: the member `blocked` of the problem `BLOCKED`. */
export interface BlockedNotice {
  reason: string;
  /** The id of the rule, to quote in a complaint. */
  rule: string;
  /** When the rule ends, RFC 3339; `null` for never. */
  until: string | null;
  /** Where to complain; `null` if the operator has not set it. */
  contactUrl: string | null;
}

const NO_TIMES: OpeningTimes = { opensAt: null, lobbyAt: null };

/** A request that the waiting room refused. */
export class ProblemError extends Error {
  override name = "ProblemError";

  constructor(
    readonly code: ProblemCode,
    readonly status: number,
    detail: string,
    /** When to retry, if the server said so. */
    readonly retryAfterMs: number | null = null,
    readonly opening: OpeningTimes = NO_TIMES,
    /** What to solve before the next join, for `CHALLENGE_REQUIRED`. */
    readonly challenge: Challenge | null = null,
    /** Why the user is blocked, for `BLOCKED`. */
    readonly blocked: BlockedNotice | null = null,
  ) {
    super(detail);
  }

  /** When the line opens, for `NOT_OPEN_YET`; `null` if the server set no time. */
  get opensAt(): string | null {
    return this.opening.opensAt;
  }

  /** When the lobby opens and joins are accepted, for `NOT_OPEN_YET`. */
  get lobbyAt(): string | null {
    return this.opening.lobbyAt;
  }

  /** Returns whether a retry can succeed. */
  get isTransient(): boolean {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** Reads the problem of a response. A proxy may have sent anything else. */
export async function problemFromResponse(response: Response): Promise<ProblemError> {
  const body: unknown = await response.json().catch(() => null);
  const { code, detail, opening, challenge, blocked } = fieldsOf(body);
  const retryAfterMs = retryAfter(response.headers);
  return new ProblemError(code ?? "UNAVAILABLE", response.status, detail ?? response.statusText, retryAfterMs, opening, challenge, blocked);
}

/** Reads the problem in the final event of a stream. Without a status it counts as transient. */
export function problemFromEvent(json: string): ProblemError {
  let body: unknown = null;
  try {
    body = JSON.parse(json);
  } catch {
    // Not JSON: the stream ended for an unknown reason.
  }
  const { code, detail, status, blocked } = fieldsOf(body);
  return new ProblemError(code ?? "UNAVAILABLE", status ?? 503, detail ?? "", null, NO_TIMES, null, blocked);
}

interface Fields {
  code?: string;
  detail?: string;
  status?: number;
  opening: OpeningTimes;
  challenge: Challenge | null;
  blocked: BlockedNotice | null;
}

function fieldsOf(body: unknown): Fields {
  const problem = membersOf(body);
  const { code, detail, status, opensAt, lobbyAt } = problem;
  return {
    opening: { opensAt: typeof opensAt === "string" ? opensAt : null, lobbyAt: typeof lobbyAt === "string" ? lobbyAt : null },
    challenge: challengeOf(membersOf(problem.challenge)),
    blocked: blockedOf(membersOf(problem.blocked)),
    ...(typeof code === "string" && { code }),
    ...(typeof detail === "string" && { detail }),
    ...(typeof status === "number" && { status }),
  };
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function challengeOf({ kind, challenge, difficulty, widget }: Record<string, unknown>): Challenge | null {
  const isComplete = typeof kind === "string" && typeof challenge === "string" && typeof difficulty === "number";
  return isComplete ? { kind, challenge, difficulty, ...(widget ? { widget: widget as Widget } : {}) } : null;
}

function blockedOf({ reason, rule, until, contactUrl }: Record<string, unknown>): BlockedNotice | null {
  if (typeof reason !== "string" || typeof rule !== "string") return null;
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  return { reason, rule, until: text(until), contactUrl: text(contactUrl) };
}

function retryAfter(headers: Headers): number | null {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : null;
}
