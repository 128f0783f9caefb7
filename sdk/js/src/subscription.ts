import { Emitter } from "./emitter.js";
import { backoff, sleep } from "./sleep.js";
import { ProblemError } from "./problem.js";
import type { WaitingRoom } from "./room.js";
import type { StreamState } from "./sse.js";
import { readStream, StreamUnsupportedError } from "./stream.js";
import { isHidden, sleepUntilVisible } from "./visibility.js";
import { isFinal, type PageTexts, type Ticket } from "./wire.js";

/** The current connection to the waiting room. */
export interface Connection {
  state: "live" | "polling" | "lost";
  /** Time until the next attempt, while `lost`. */
  retryInMs?: number;
}

export interface SubscriptionEvents {
  /** The ticket changed; the first event is sent immediately. */
  ticket: Ticket;
  /** The ticket was admitted. Emitted once. */
  enterable: Ticket;
  /** The ticket has ended. The last event. */
  end: Ticket;
  connection: Connection;
  /** The operator changed the texts of the waiting page. Only with the option `page`. */
  page: PageTexts;
  /** The ticket cannot be followed: invalid, of another item, or the line was restarted. */
  problem: ProblemError;
}

export interface SubscriptionOptions {
  /** Revision of the page texts that are shown; enables `page` events. */
  page?: string;
  /** Whether to use streams, which hold a connection, or only polls. Default: true. */
  streams?: boolean;
}

/** Delay of polls in a hidden tab. The server marks the ticket as seen meanwhile. */
const HIDDEN_WAIT_MS = 25_000;
/** How long to poll after a stream was refused. */
const POLL_FALLBACK_MS = 60_000;
/** Consecutive failures after which polls are used. */
const MAX_STREAM_FAILURES = 3;
/** Delay before reconnecting if the server sent none. */
const RECONNECT_MS = 1_000;
/** Time over which clients that poll spread their first poll after the opening of their line. */
const OPENING_SPREAD_MS = 3_000;

/** Follows one ticket until it ends: by a stream if possible, otherwise by polls. */
export class TicketSubscription extends Emitter<SubscriptionEvents> {
  readonly #room: WaitingRoom;
  readonly #token: string;
  readonly #stopping = new AbortController();
  readonly #streamState: StreamState = { lastEventId: "", retryMs: null };
  #last: Ticket | null = null;
  #connection: Connection["state"] | null = null;
  #page: string | undefined;
  #streamFrom = 0;
  #failures = 0;

  constructor(room: WaitingRoom, token: string, { page, streams = true }: SubscriptionOptions = {}) {
    super();
    this.#room = room;
    this.#token = token;
    this.#page = page;
    if (!streams) this.#streamFrom = Number.POSITIVE_INFINITY;
    // After the caller has registered its listeners.
    queueMicrotask(() => void this.#run());
  }

  /** Stops following. The ticket stays in line. */
  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const signal = this.#stopping.signal;
    while (!signal.aborted) {
      try {
        await (Date.now() >= this.#streamFrom ? this.#stream() : this.#poll());
      } catch (error) {
        if (!signal.aborted) await this.#handleFailure(error);
      }
    }
  }

  async #stream(): Promise<void> {
    const listener = {
      ticket: (ticket: Ticket) => this.#emitTicket(ticket, "live"),
      page: (page: PageTexts) => this.#showPage(page),
    };
    const response = await this.#openStream();
    this.#connected("live");
    await readStream(response, this.#streamState, listener, this.#stopping.signal).catch((error: unknown) => {
      // The ticket has a newer stream elsewhere, or the pod is at its limit: another stream would end the newer one.
      if (error instanceof ProblemError && error.status === 429) throw new StreamUnsupportedError(false);
      throw error;
    });
    if (this.#stopping.signal.aborted) return;
    // The server sends a delay before a restart, spread over all clients.
    const delay = this.#streamState.retryMs ?? RECONNECT_MS;
    this.#emitConnection({ state: "lost", retryInMs: delay });
    await sleep(delay, this.#stopping.signal);
  }

  async #openStream(): Promise<Response> {
    try {
      return await this.#room.stream(this.#token, this.#streamState.lastEventId, this.#stopping.signal, this.#page);
    } catch (error) {
      // A pod at its limit of streams still answers polls.
      if (error instanceof ProblemError && (error.status === 503 || error.status === 429)) throw new StreamUnsupportedError(false);
      throw error;
    }
  }

  async #poll(): Promise<void> {
    // Browsers run timers of hidden tabs once per minute, which may exceed the grace period. A long poll
    // needs no timer, is rare, and keeps the ticket marked as seen.
    const wait = isHidden() && this.#last?.status === "WAITING" ? HIDDEN_WAIT_MS : 0;
    const [began, before] = [Date.now(), this.#last];
    const ticket = await this.#room.poll(this.#token, wait, this.#stopping.signal);
    this.#emitTicket(ticket, "polling");
    await this.#pollPage();
    // A pod at its limit of long polls answers immediately and unchanged.
    const wasDelayed = Date.now() - began >= wait || !isSame(ticket, before);
    if ((wait === 0 || !wasDelayed) && !isFinal(ticket.status)) {
      await sleepUntilVisible(pollDelay(ticket), this.#stopping.signal);
    }
  }

  /** Polls the page texts. A failure is ignored until the next poll. */
  async #pollPage(): Promise<void> {
    if (this.#page === undefined || this.#stopping.signal.aborted) return;
    const page = await this.#room.page(this.#stopping.signal).catch(() => null);
    if (page && !this.#stopping.signal.aborted) this.#showPage(page);
  }

  #showPage(page: PageTexts): void {
    if (page.revision === this.#page) return;
    this.#page = page.revision;
    this.emit("page", page);
  }

  async #handleFailure(error: unknown): Promise<void> {
    if (error instanceof StreamUnsupportedError) {
      this.#streamFrom = error.isPermanent ? Number.POSITIVE_INFINITY : Date.now() + POLL_FALLBACK_MS;
      return;
    }
    if (error instanceof ProblemError && !error.isTransient) {
      this.stop();
      this.emit("problem", error);
      return;
    }
    const wait = backoff(this.#failures++);
    const retryAfter = error instanceof ProblemError ? error.retryAfterMs : null;
    // A proxy may support polls but no streams.
    if (this.#failures === MAX_STREAM_FAILURES) this.#streamFrom = Date.now() + POLL_FALLBACK_MS;
    const delay = Math.max(wait, retryAfter ?? 0);
    this.#emitConnection({ state: "lost", retryInMs: delay });
    await sleepUntilVisible(delay, this.#stopping.signal);
  }

  #emitTicket(ticket: Ticket, state: "live" | "polling"): void {
    this.#connected(state);
    const before = this.#last?.status;
    this.#last = ticket;
    this.emit("ticket", ticket);
    if (ticket.status === "ENTERABLE" && before !== "ENTERABLE") this.emit("enterable", ticket);
    if (isFinal(ticket.status)) {
      this.stop();
      this.emit("end", ticket);
    }
  }

  #connected(state: "live" | "polling"): void {
    this.#failures = 0;
    this.#emitConnection({ state });
  }

  #emitConnection(connection: Connection): void {
    const unchanged = connection.state === this.#connection && connection.state !== "lost";
    this.#connection = connection.state;
    if (!unchanged) this.emit("connection", connection);
  }
}

/** Returns the delay until the next poll: shortly after the opening if that is before the interval that the server asks for. */
function pollDelay({ pollAfterMs, opensInMs }: Ticket): number {
  const delay = pollAfterMs || 5_000;
  return typeof opensInMs === "number" ? Math.min(delay, opensInMs + OPENING_SPREAD_MS * (0.1 + Math.random())) : delay;
}

/** Returns whether both tickets look the same to a waiting user. */
function isSame(ticket: Ticket, before: Ticket | null): boolean {
  return ticket.status === before?.status && ticket.position === before.position && ticket.lineState === before.lineState;
}
