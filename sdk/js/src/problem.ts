// Errors as the waiting room tells them: RFC 9457 problems with a stable code.

export type ProblemCode =
  | "INVALID_REQUEST"
  | "INVALID_TOKEN"
  | "TOKEN_MISMATCH"
  | "BLOCKED"
  | "ITEM_NOT_FOUND"
  | "SOLD_OUT"
  | "QUEUE_DISABLED"
  | "LINE_RESTARTED"
  | "RATE_LIMITED"
  | "LINE_FULL"
  | "UNAVAILABLE"
  | "STORE_FULL"
  | (string & {});

/** A request the waiting room did not grant. */
export class ProblemError extends Error {
  override name = "ProblemError";

  constructor(
    readonly code: ProblemCode,
    readonly status: number,
    detail: string,
    /** When it makes sense to try again, where the server said so. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(detail);
  }

  /** Whether the same request may well succeed a little later. */
  get passes(): boolean {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** The problem of an answer; something in between may have answered with anything else. */
export async function problemOf(answer: Response): Promise<ProblemError> {
  const told: unknown = await answer.json().catch(() => null);
  const problem = typeof told === "object" && told !== null ? (told as Record<string, unknown>) : {};
  const code = typeof problem["code"] === "string" ? problem["code"] : "UNAVAILABLE";
  const detail = typeof problem["detail"] === "string" ? problem["detail"] : answer.statusText;
  return new ProblemError(code, answer.status, detail, retryAfter(answer.headers));
}

function retryAfter(headers: Headers): number | null {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : null;
}
