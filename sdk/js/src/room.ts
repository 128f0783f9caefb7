import { type Challenge, type OnChallenge, type SolveChallenge, solveChallenge } from "./challenge.js";
import type { DrawRecord } from "./draw.js";
import { TicketSubscription, type SubscriptionOptions } from "./subscription.js";
import { ProblemError, problemFromResponse } from "./problem.js";
import type { Line, PageTexts, Ticket } from "./wire.js";

/** Above the longest delayed response (30 s). */
const REQUEST_TIMEOUT_MS = 40_000;

export interface RoomOptions {
  /** The item. */
  itemId: string;
  /** Origin of the waiting room. Default: the origin of this page. */
  baseUrl?: string;
  /** Custom `fetch`, for example in tests. */
  fetch?: typeof fetch;
  /** Solves challenges, for example in a worker. Default: this thread, in slices of some milliseconds. */
  solve?: SolveChallenge;
  /** Returns the user's response to a challenge that is no proof of work, such as a widget. Without it such a challenge is an error. */
  onChallenge?: OnChallenge;
  /** Revision of the waiting page, which it sends with its joins. Other clients leave it out. */
  page?: string;
  /** How the operator's statistics name this client. Default: `sdk-js`; nothing on a page of another origin, whose proxy may not allow the header. */
  client?: string;
}

export interface JoinOptions {
  /** An invitation code: the ticket waits in the lane of the invitation. A user who waits in another lane gives up that place. */
  code?: string;
  /** The token of an earlier ticket of this user: a line that challenges new users does not challenge its holder. */
  token?: string;
  /** A signed identity (JWT) of the user, for a waiting room that asks for one. */
  identity?: string;
  signal?: AbortSignal;
}

/** Challenges that one join solves: the second one replaces one that expired meanwhile. */
const MAX_CHALLENGES = 3;

/** Options of one request. */
export interface RequestOptions {
  method?: string;
  token?: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: object;
  signal?: AbortSignal;
  /** Whether the response is a stream, which has no timeout. */
  isStream?: boolean;
  /** Whether the response may come from a cache, because it is equal for all users. */
  cacheable?: boolean;
}

/** Client for the line of one item. Tokens are sent in a header, so that they are not logged with URLs. */
export class WaitingRoom {
  readonly itemId: string;
  readonly #line: string;
  readonly #page: string;
  readonly #fetch: typeof fetch;
  readonly #solve: SolveChallenge;
  readonly #onChallenge: OnChallenge | undefined;
  readonly #joinHeaders: Record<string, string>;
  readonly #client: string;
  #clockOffsetMs = 0;

  constructor({ itemId, baseUrl = "", fetch: customFetch, solve, onChallenge, page, client }: RoomOptions) {
    this.itemId = itemId;
    this.#line = `${baseUrl}/api/v1/item/${encodeURIComponent(itemId)}/waiting-queue`;
    this.#page = `${baseUrl}/wait/${encodeURIComponent(itemId)}/page.json`;
    this.#joinHeaders = page ? { "daegi-page": page } : {};
    this.#solve = solve ?? ((challenge, signal) => solveChallenge(challenge, signal));
    this.#onChallenge = onChallenge;
    this.#client = client ?? (isOtherOrigin(baseUrl) ? "" : "sdk-js");
    this.#fetch = customFetch ?? ((...args) => fetch(...args));
  }

  /**
   * Joins the line, or returns the ticket this user has. Throws `INVALID_CODE` if the code cannot be used: nothing changes then.
   * Solves the proof of work of a line that challenges new users, which takes a second or more, and calls `onChallenge` for other challenges.
   * Without a user id the identity names the
   * user, in the options or in a cookie of the site.
   */
  async join(userId: string | null, { code, token, identity, signal }: JoinOptions = {}): Promise<Ticket> {
    let solution: string | undefined;
    const headers = { ...(userId !== null && { "user-id": userId }), ...(identity !== undefined && { "daegi-identity": identity }), ...this.#joinHeaders, ...(this.#client && { "daegi-client": this.#client }) };
    for (let left = MAX_CHALLENGES; ; left--) {
      // In the body, because a header cannot contain every text that a user types.
      const body = { ...(code && { code }), ...(solution && { challenge: solution }) };
      const hasBody = code || solution;
      const options = { method: "POST", headers, ...(token && { token }), ...(hasBody && { body }), ...(signal && { signal }) };
      try {
        return (await (await this.request("", options)).json()) as Ticket;
      } catch (error) {
        if (!(error instanceof ProblemError) || error.challenge === null || left === 0) throw error;
        const answered = this.#answer(error.challenge, signal);
        if (!answered) throw error;
        solution = await answered;
      }
    }
  }

  /** Returns the solution of a challenge; `undefined` if this client cannot solve it. */
  #answer(challenge: Challenge, signal?: AbortSignal): Promise<string> | undefined {
    if (challenge.kind === "pow") return this.#solve(challenge, signal);
    return this.#onChallenge?.(challenge, signal).then((response) => `${challenge.challenge}:${response}`);
  }

  /** Polls a ticket. The response is delayed by up to `waitMs` until something changes. */
  async poll(token: string, waitMs = 0, signal?: AbortSignal): Promise<Ticket> {
    const query = waitMs > 0 ? `?waitMs=${waitMs}` : "";
    return (await this.request(`/me${query}`, { token, ...(signal && { signal }) })).json() as Promise<Ticket>;
  }

  /** Ends the ticket or the entry. */
  async leave(token: string): Promise<void> {
    await this.request("/me", { method: "DELETE", token });
  }

  /** Returns the public view of the line. */
  async line(): Promise<Line> {
    return (await this.request("", { cacheable: true })).json() as Promise<Line>;
  }

  /** Returns the public record of the draw; with a token also the proof that the draw included its ticket. */
  async draw(token?: string, signal?: AbortSignal): Promise<DrawRecord> {
    const options = { cacheable: token === undefined, ...(token !== undefined && { token }), ...(signal && { signal }) };
    // Shared caches may answer from the public record, whatever the headers: the one with a proof has a URL of its own.
    const query = token === undefined ? "" : "?proof";
    return (await this.request(`/draw${query}`, options)).json() as Promise<DrawRecord>;
  }

  /** Returns the operator's texts on the waiting page. */
  async page(signal?: AbortSignal): Promise<PageTexts> {
    const options = { cacheable: true, ...(signal && { signal }) };
    return (await this.#send(this.#page, options)).json() as Promise<PageTexts>;
  }

  /** Follows a ticket until it ends or `stop` is called. Register listeners synchronously. */
  follow(ticket: Ticket | string, options: SubscriptionOptions = {}): TicketSubscription {
    return new TicketSubscription(this, typeof ticket === "string" ? ticket : ticket.token, options);
  }

  /** Opens a stream of events. `page` is the revision of the page texts that are shown, if any. */
  async stream(token: string, lastEventId: string, signal: AbortSignal, page?: string): Promise<Response> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastEventId) headers["last-event-id"] = lastEventId;
    const query = page === undefined ? "" : `?page=${encodeURIComponent(page)}`;
    return this.request(`/me/events${query}`, { token, headers, signal, isStream: true });
  }

  /** Returns the server's time in milliseconds, because clocks of clients are often wrong and passes expire on time. */
  now(): number {
    return Date.now() + this.#clockOffsetMs;
  }

  /** Sends a request for the line: `path` follows its URL. */
  request(path: string, options: RequestOptions): Promise<Response> {
    return this.#send(this.#line + path, options);
  }

  async #send(address: string, { method = "GET", token, headers = {}, body, signal, isStream, cacheable }: RequestOptions): Promise<Response> {
    const allHeaders = { ...headers, ...(token && { authorization: `Bearer ${token}` }), ...(body && { "content-type": "application/json" }) };
    const limit = isStream ? signal : withTimeout(REQUEST_TIMEOUT_MS, signal);
    const cache = cacheable ? "default" : "no-store";
    const init: RequestInit = { method, headers: allHeaders, cache, ...(body && { body: JSON.stringify(body) }), ...(limit && { signal: limit }) };
    const response = await this.#fetch(address, init);
    this.#setClock(response.headers.get("date"));
    if (!response.ok) throw await problemFromResponse(response);
    return response;
  }

  #setClock(date: string | null): void {
    const serverTime = Date.parse(date ?? "");
    // The header has whole seconds: on average it is 500 ms behind.
    if (!Number.isNaN(serverTime)) this.#clockOffsetMs = serverTime + 500 - Date.now();
  }
}

/** Returns whether this is a page of another origin than the waiting room. */
function isOtherOrigin(baseUrl: string): boolean {
  const { location } = globalThis as { location?: Location };
  return location !== undefined && new URL(baseUrl, location.href).origin !== location.origin;
}

function withTimeout(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  return signal && "any" in AbortSignal ? AbortSignal.any([signal, limit]) : (signal ?? limit);
}
