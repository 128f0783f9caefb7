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
  | "LINE_FULL"
  | "RATE_LIMITED"
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
  const body: unknown = await answer.json().catch(() => null);
  const { code, detail } = fieldsOf(body);
  return new ProblemError(code ?? "UNAVAILABLE", answer.status, detail ?? answer.statusText, retryAfter(answer.headers));
}

/** The problem in the final event of a stream. Without a status it is one that may pass. */
export function problemIn(json: string): ProblemError {
  let body: unknown = null;
  try {
    body = JSON.parse(json);
  } catch {
    // Not JSON: the stream ended for an unknown reason.
  }
  const { code, detail, status } = fieldsOf(body);
  return new ProblemError(code ?? "UNAVAILABLE", status ?? 503, detail ?? "");
}

function fieldsOf(body: unknown): { code?: string; detail?: string; status?: number } {
  const problem = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const { code, detail, status } = problem;
  return {
    ...(typeof code === "string" && { code }),
    ...(typeof detail === "string" && { detail }),
    ...(typeof status === "number" && { status }),
  };
}

function retryAfter(headers: Headers): number | null {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : null;
}
