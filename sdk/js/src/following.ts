import { Emitter } from "./emitter.js";
import { backoff, pause } from "./pause.js";
import { ProblemError } from "./problem.js";
import type { WaitingRoom } from "./room.js";
import type { StreamMemory } from "./sse.js";
import { readStream, StreamUnusable } from "./stream.js";
import { isHidden, pauseUnlessShown } from "./visibility.js";
import { isFinal, type PageTexts, type Ticket } from "./wire.js";

/** How the waiting room is reached now. */
export interface Connection {
  state: "live" | "polling" | "lost";
  /** When the next attempt comes, while `lost`. */
  retryInMs?: number;
}

export interface FollowEvents {
  /** Something changed; the first comes at once. */
  ticket: Ticket;
  /** It is the person's turn. Once. */
  enterable: Ticket;
  /** The ticket has ended; nothing follows. */
  end: Ticket;
  connection: Connection;
  /** The operator changed the texts of the waiting page. Only where `page` was given. */
  page: PageTexts;
  /** The ticket cannot be followed: not genuine, of another line, or the line was restarted. */
  problem: ProblemError;
}

export interface FollowOptions {
  /** The revision of the waiting page's texts that are shown now: makes `page` events. */
  page?: string;
  /** Whether to use streams, which hold a connection; polls do otherwise. Streams unless given. */
  streams?: boolean;
}

/** How long polls are held back in a hidden tab. The server counts the person as seen all the while. */
const HIDDEN_WAIT_MS = 25_000;
/** How long to poll after the server had no stream to give. */
const NO_STREAM_MS = 60_000;
/** After so many failures in a row polls are tried. */
const STREAM_TRIES = 3;
/** What a stream that ended without a word about it is worth. */
const RECONNECT_MS = 1_000;

/** Follows one ticket: a stream where that works, polls where it does not, until it ends. */
export class Following extends Emitter<FollowEvents> {
  readonly #room: WaitingRoom;
  readonly #token: string;
  readonly #stopping = new AbortController();
  readonly #memory: StreamMemory = { lastEventId: "", retryMs: null };
  #last: Ticket | null = null;
  #connection: Connection["state"] | null = null;
  #page: string | undefined;
  #streamFrom = 0;
  #failures = 0;

  constructor(room: WaitingRoom, token: string, { page, streams = true }: FollowOptions = {}) {
    super();
    this.#room = room;
    this.#token = token;
    this.#page = page;
    if (!streams) this.#streamFrom = Number.POSITIVE_INFINITY;
    // After the caller has had a chance to listen.
    queueMicrotask(() => void this.#run());
  }

  /** Ends following. The place is kept. */
  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const signal = this.#stopping.signal;
    while (!signal.aborted) {
      try {
        await (Date.now() >= this.#streamFrom ? this.#stream() : this.#poll());
      } catch (error) {
        if (!signal.aborted) await this.#failed(error);
      }
    }
  }

  async #stream(): Promise<void> {
    const listener = {
      ticket: (ticket: Ticket) => this.#tell(ticket, "live"),
      page: (page: PageTexts) => this.#showPage(page),
    };
    const answer = await this.#opened();
    this.#connected("live");
    await readStream(answer, this.#memory, listener, this.#stopping.signal).catch((error: unknown) => {
      // The ticket has a newer stream elsewhere, or the pod none to give: opening another one would end the newer one.
      if (error instanceof ProblemError && error.status === 429) throw new StreamUnusable(false);
      throw error;
    });
    if (this.#stopping.signal.aborted) return;
    // The server says how long when it knows, such as before a restart, spread over everybody.
    const rest = this.#memory.retryMs ?? RECONNECT_MS;
    this.#tellConnection({ state: "lost", retryInMs: rest });
    await pause(rest, this.#stopping.signal);
  }

  async #opened(): Promise<Response> {
    try {
      return await this.#room.stream(this.#token, this.#memory.lastEventId, this.#stopping.signal, this.#page);
    } catch (error) {
      // A pod that has no more streams to give still answers polls.
      if (error instanceof ProblemError && (error.status === 503 || error.status === 429)) throw new StreamUnusable(false);
      throw error;
    }
  }

  async #poll(): Promise<void> {
    // Browsers let timers of hidden tabs run once per minute, which may be too late for the
    // place. A poll that is held back needs no timer, comes rarely, and counts all the while.
    const wait = isHidden() && this.#last?.status === "WAITING" ? HIDDEN_WAIT_MS : 0;
    const [began, before] = [Date.now(), this.#last];
    const ticket = await this.#room.poll(this.#token, wait, this.#stopping.signal);
    this.#tell(ticket, "polling");
    await this.#pollPage();
    // A pod that holds as many polls as it may answers immediately, with nothing new.
    const wasHeld = Date.now() - began >= wait || !isSame(ticket, before);
    if ((wait === 0 || !wasHeld) && !isFinal(ticket.status)) {
      const rest = ticket.pollAfterMs || 5_000;
      await pauseUnlessShown(rest, this.#stopping.signal);
    }
  }

  /** Texts are worth less than places: a failure is left to the next poll. */
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

  async #failed(error: unknown): Promise<void> {
    if (error instanceof StreamUnusable) {
      this.#streamFrom = error.forGood ? Number.POSITIVE_INFINITY : Date.now() + NO_STREAM_MS;
      return;
    }
    if (error instanceof ProblemError && !error.passes) {
      this.stop();
      this.emit("problem", error);
      return;
    }
    const wait = backoff(this.#failures++);
    const told = error instanceof ProblemError ? error.retryAfterMs : null;
    // Something in between may know polls and no streams.
    if (this.#failures === STREAM_TRIES) this.#streamFrom = Date.now() + NO_STREAM_MS;
    const rest = Math.max(wait, told ?? 0);
    this.#tellConnection({ state: "lost", retryInMs: rest });
    await pauseUnlessShown(rest, this.#stopping.signal);
  }

  #tell(ticket: Ticket, state: "live" | "polling"): void {
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
    this.#tellConnection({ state });
  }

  #tellConnection(connection: Connection): void {
    const again = connection.state === this.#connection && connection.state !== "lost";
    this.#connection = connection.state;
    if (!again) this.emit("connection", connection);
  }
}

/** Whether both say the same to a person who waits. */
function isSame(ticket: Ticket, before: Ticket | null): boolean {
  return ticket.status === before?.status && ticket.position === before.position && ticket.lineState === before.lineState;
}
