import { STATUS_CODES } from "node:http";

const FACTS = {
  PASS_MISSING: [401, "there is no pass, please wait in line first"],
  PASS_INVALID: [401, "the pass was not issued by the waiting room"],
  PASS_EXPIRED: [401, "the pass has expired, please join the line again"],
  PASS_NOT_YET_VALID: [401, "the pass is not valid yet"],
  PASS_OTHER_ITEM: [403, "the pass is for another item"],
  PASS_REVOKED: [403, "the pass was used or given back, please join the line again"],
  UNAVAILABLE: [503, "the waiting room cannot be asked right now"],
  ITEM_NOT_FOUND: [404, "there is no such item"],
} as const;

/** Machine-readable reason of a refusal. */
export type RefusalCode = keyof typeof FACTS;

/** A refused request. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly status: number;

  constructor(code: RefusalCode) {
    super(FACTS[code][1]);
    this.code = code;
    this.status = FACTS[code][0];
  }

  /** Returns whether joining the line resolves the refusal. */
  get shouldRejoin(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/** The response to a refused request. */
export interface GuardResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Builds the response: browsers are redirected to the waiting page, other clients get an RFC 9457 problem. */
export function toResponse(refusal: Refusal, accept: string, waitingPage: string): GuardResponse {
  const common = { "cache-control": "no-store", vary: "accept" };
  if (accept.includes("text/html") && refusal.shouldRejoin) {
    // 303, so that the browser loads the page with GET whatever the request's method was.
    return { status: 303, headers: { location: waitingPage, ...common }, body: "" };
  }
  const { status, code, message: detail } = refusal;
  const problem = { type: "about:blank", title: STATUS_CODES[status], status, code, detail };
  const body = JSON.stringify(refusal.shouldRejoin ? { ...problem, waitingPage } : problem);
  return { status, headers: { "content-type": "application/problem+json", ...hint(refusal), ...common }, body };
}

/** RFC 9110 requires `WWW-Authenticate` on every 401. */
function hint({ code, status }: Refusal): Record<string, string> {
  if (code === "PASS_MISSING") return { "www-authenticate": "Bearer" };
  if (status === 401) return { "www-authenticate": 'Bearer error="invalid_token"' };
  return status === 503 ? { "retry-after": "1" } : {};
}
