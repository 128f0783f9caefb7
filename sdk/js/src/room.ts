import { Following, type FollowOptions } from "./following.js";
import { problemOf } from "./problem.js";
import type { Line, PageTexts, Ticket } from "./wire.js";

/** Longer than the longest answer that is held back (30 s). */
const PATIENCE_MS = 40_000;

export interface RoomOptions {
  /** What people wait for. */
  itemId: string;
  /** Where the waiting room is; this page's own origin unless given. */
  baseUrl?: string;
  /** For tests, and for clients with a fetch of their own. */
  fetch?: typeof fetch;
}

/** How one request differs from the others. */
interface Asked {
  method?: string;
  token?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Whether the answer is a stream, which may last. */
  lasts?: boolean;
  /** Whether a cache may answer: what is equal for all people. */
  cacheable?: boolean;
}

/** One item's waiting room. Tokens travel in a header, so that no log or history keeps them. */
export class WaitingRoom {
  readonly itemId: string;
  readonly #line: string;
  readonly #page: string;
  readonly #fetch: typeof fetch;
  #clockOffsetMs = 0;

  constructor({ itemId, baseUrl = "", fetch: own }: RoomOptions) {
    this.itemId = itemId;
    this.#line = `${baseUrl}/api/v1/item/${encodeURIComponent(itemId)}/waiting-queue`;
    this.#page = `${baseUrl}/wait/${encodeURIComponent(itemId)}/page.json`;
    this.#fetch = own ?? ((...args) => fetch(...args));
  }

  /** Takes a place, or finds the one this person has. */
  async join(userId: string, signal?: AbortSignal): Promise<Ticket> {
    const asked = { method: "POST", headers: { "user-id": userId }, ...(signal && { signal }) };
    return (await this.#ask("", asked)).json() as Promise<Ticket>;
  }

  /** Where a ticket stands; held back up to `waitMs` until that changes. */
  async poll(token: string, waitMs = 0, signal?: AbortSignal): Promise<Ticket> {
    const held = waitMs > 0 ? `?waitMs=${waitMs}` : "";
    return (await this.#ask(`/me${held}`, { token, ...(signal && { signal }) })).json() as Promise<Ticket>;
  }

  /** Gives the place or the entry back. */
  async leave(token: string): Promise<void> {
    await this.#ask("/me", { method: "DELETE", token });
  }

  /** What everybody may know about the line. */
  async line(): Promise<Line> {
    return (await this.#ask("", { cacheable: true })).json() as Promise<Line>;
  }

  /** The operator's texts on the waiting page. */
  async page(signal?: AbortSignal): Promise<PageTexts> {
    const asked = { cacheable: true, ...(signal && { signal }) };
    return (await this.#send(this.#page, asked)).json() as Promise<PageTexts>;
  }

  /** Tells about a ticket until it ends or `stop` is called. Listen to its events at once. */
  follow(ticket: Ticket | string, options: FollowOptions = {}): Following {
    return new Following(this, typeof ticket === "string" ? ticket : ticket.token, options);
  }

  /** An open stream of events. `page` is the revision of the page's texts that are shown, if a page is. */
  async stream(token: string, lastEventId: string, signal: AbortSignal, page?: string): Promise<Response> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastEventId) headers["last-event-id"] = lastEventId;
    const query = page === undefined ? "" : `?page=${encodeURIComponent(page)}`;
    return this.#ask(`/me/events${query}`, { token, headers, signal, lasts: true });
  }

  /** The server's time in milliseconds: people's clocks are often wrong, passes end on time. */
  now(): number {
    return Date.now() + this.#clockOffsetMs;
  }

  #ask(path: string, asked: Asked): Promise<Response> {
    return this.#send(this.#line + path, asked);
  }

  async #send(address: string, { method = "GET", token, headers = {}, signal, lasts, cacheable }: Asked): Promise<Response> {
    const given = token ? { ...headers, authorization: `Bearer ${token}` } : headers;
    const limit = lasts ? signal : within(PATIENCE_MS, signal);
    const cache = cacheable ? "default" : "no-store";
    const init: RequestInit = { method, headers: given, cache, ...(limit && { signal: limit }) };
    const answer = await this.#fetch(address, init);
    this.#setClock(answer.headers.get("date"));
    if (!answer.ok) throw await problemOf(answer);
    return answer;
  }

  #setClock(date: string | null): void {
    const told = Date.parse(date ?? "");
    // The header knows seconds only: on average it is half of one behind.
    if (!Number.isNaN(told)) this.#clockOffsetMs = told + 500 - Date.now();
  }
}

function within(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  return signal && "any" in AbortSignal ? AbortSignal.any([signal, limit]) : (signal ?? limit);
}
