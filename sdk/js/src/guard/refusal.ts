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

/** Why somebody is not let in, for programs. */
export type RefusalCode = keyof typeof FACTS;

/** Somebody is not let in. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly status: number;

  constructor(code: RefusalCode) {
    super(FACTS[code][1]);
    this.code = code;
    this.status = FACTS[code][0];
  }

  /** Whether waiting in line mends it. */
  get wantsTheLine(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/** What somebody who is not let in is answered. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** People are sent to the waiting page, programs get an RFC 9457 problem. */
export function answerTo(refusal: Refusal, accept: string, waitingPage: string): Answer {
  const common = { "cache-control": "no-store", vary: "accept" };
  if (accept.includes("text/html") && refusal.wantsTheLine) {
    // 303: whatever they wanted to do, they look at the page now.
    return { status: 303, headers: { location: waitingPage, ...common }, body: "" };
  }
  const { status, code, message: detail } = refusal;
  const problem = { type: "about:blank", title: STATUS_CODES[status], status, code, detail };
  const body = JSON.stringify(refusal.wantsTheLine ? { ...problem, waitingPage } : problem);
  return { status, headers: { "content-type": "application/problem+json", ...hint(refusal), ...common }, body };
}

/** RFC 9110 wants every 401 to say how to authenticate. */
function hint({ code, status }: Refusal): Record<string, string> {
  if (code === "PASS_MISSING") return { "www-authenticate": "Bearer" };
  if (status === 401) return { "www-authenticate": 'Bearer error="invalid_token"' };
  return status === 503 ? { "retry-after": "1" } : {};
}
