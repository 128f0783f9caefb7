// One connection for all tabs of a browser that wait with the same ticket.
//
// Over HTTP/1.1 a browser opens at most six connections per host, so that a stream per tab makes the seventh tab hang.
// A Web Lock elects the tab that follows the ticket. It sends what it learns to the others over a BroadcastChannel, and
// the browser hands the lock to another tab when it closes. A phone may suspend the tab that leads without closing it:
// a visible tab that gets no reply steals the lock.

import { Emitter } from "../../../sdk/js/src/emitter.js";
import { type BlockedNotice, type Connection, type TicketSubscription, type SubscriptionEvents, isFinal, type PageTexts, ProblemError, type Ticket, type WaitingRoom } from "../../../sdk/js/src/index.js";

/** The part of a subscription that a visit uses. */
export type SubscriptionLike = Pick<TicketSubscription, "on" | "stop">;

/** How often a visible tab checks that the leading tab replies. */
const CHECK_INTERVAL_MS = 10_000;
/** The longest time that a leading tab may take to reply: it does so without a timer. */
const REPLY_TIMEOUT_MS = 3_000;

/** The state of the leading tab. */
interface State {
  ticket?: Ticket;
  connection?: Connection;
  page?: PageTexts;
}

type Message =
  | { kind: "hello" }
  | { kind: "state"; state: State }
  | { kind: "problem"; code: string; status: number; detail: string; blocked?: BlockedNotice | null };

export class Tabs {
  readonly #room: WaitingRoom;
  readonly #locks: LockManager | null;
  #page: string;

  /** `page` is the revision of the page's texts that this tab shows. */
  constructor(room: WaitingRoom, page: string) {
    this.#room = room;
    this.#page = page;
    // Web Locks exist in secure contexts only.
    this.#locks = typeof BroadcastChannel === "function" ? (navigator.locks ?? null) : null;
  }

  /** Follows a ticket together with the other tabs; alone and by polls where tabs cannot find each other. */
  follow(token: string): SubscriptionLike {
    const open = (streams: boolean) => this.#room.follow(token, { page: this.#page, streams });
    const follower = this.#locks ? new SharedSubscription(this.#locks, `daegi:follow:${token}`, () => open(true)) : open(false);
    follower.on("page", ({ revision }) => (this.#page = revision));
    return follower;
  }

  /** Runs `work` in one tab at a time, where the browser can see to it. */
  async alone(name: string, work: () => Promise<void>): Promise<void> {
    if (this.#locks) await this.#locks.request(`daegi:join:${name}`, work);
    else await work();
  }
}

class SharedSubscription extends Emitter<SubscriptionEvents> {
  readonly #stopping = new AbortController();
  readonly #channel: BroadcastChannel;
  readonly #state: State = {};
  /** The connection of this tab, while it leads. */
  #own: TicketSubscription | null = null;
  /** Gives the lock back. */
  #release = () => {};
  #queued = new AbortController();
  #repliedAt = 0;
  /** When the ticket of the state was received, on the clock of `performance.now()`. */
  #ticketAt = 0;

  constructor(
    readonly locks: LockManager,
    readonly name: string,
    readonly open: () => TicketSubscription,
  ) {
    super();
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => this.#receive(data);
    const check = () => this.#check();
    const timer = setInterval(check, CHECK_INTERVAL_MS);
    document.addEventListener("visibilitychange", check);
    this.#stopping.signal.addEventListener("abort", () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", check);
      this.#queued.abort();
      this.#release();
      this.#channel.close();
    });
    // After the caller has had a chance to listen.
    queueMicrotask(() => {
      void this.#queue();
      check();
    });
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Leads as soon as no other tab does. */
  async #queue(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#queued = new AbortController();
      await this.#lead({ signal: this.#queued.signal });
      // Given up because this tab steals the lock: `#steal` queues again once it lost it.
      if (this.#queued.signal.aborted) return;
    }
  }

  async #steal(): Promise<void> {
    this.#queued.abort();
    await this.#lead({ steal: true });
    await this.#queue();
  }

  /** Follows the ticket while this tab has the lock: until it stops, or another tab steals the lock. */
  async #lead(options: LockOptions): Promise<void> {
    let own: TicketSubscription | null = null;
    const work = () => {
      if (this.#stopping.signal.aborted) return;
      own = this.#follow();
      return new Promise<void>((release) => (this.#release = release));
    };
    // Rejects if the request is given up or the lock is stolen.
    await this.locks.request(this.name, options, work).catch(() => {});
    (own as TicketSubscription | null)?.stop();
    if (this.#own === own) this.#own = null;
  }

  #follow(): TicketSubscription {
    const own = this.open();
    this.#own = own;
    own.on("ticket", (ticket) => this.#share({ ticket }));
    own.on("connection", (connection) => this.#share({ connection }));
    own.on("page", (page) => this.#share({ page }));
    own.on("problem", (problem) => {
      this.#channel.postMessage({ kind: "problem", code: problem.code, status: problem.status, detail: problem.message, blocked: problem.blocked } satisfies Message);
      this.#fail(problem);
    });
    return own;
  }

  #share(news: State): void {
    this.#keep(news);
    this.#sendState();
    this.#show(news);
  }

  #keep(news: State): void {
    Object.assign(this.#state, news);
    if (news.ticket) this.#ticketAt = performance.now();
  }

  #sendState(): void {
    const { ticket } = this.#state;
    const state = ticket ? { ...this.#state, ticket: aged(ticket, performance.now() - this.#ticketAt) } : this.#state;
    this.#channel.postMessage({ kind: "state", state } satisfies Message);
  }

  #receive(message: Message): void {
    if (message.kind === "hello") {
      if (this.#own) this.#sendState();
      return;
    }
    this.#repliedAt = Date.now();
    // What a tab that lost the lock still sends is older than what this one knows.
    if (this.#own) return;
    if (message.kind === "problem") {
      const { code, status, detail, blocked } = message;
      return this.#fail(new ProblemError(code, status, detail, null, undefined, null, blocked ?? null));
    }
    this.#keep(message.state);
    this.#show(message.state);
  }

  #show({ ticket, connection, page }: State): void {
    if (page) this.emit("page", page);
    if (connection) this.emit("connection", connection);
    if (!ticket) return;
    this.emit("ticket", ticket);
    if (!isFinal(ticket.status)) return;
    this.stop();
    this.emit("end", ticket);
  }

  #fail(problem: ProblemError): void {
    this.stop();
    this.emit("problem", problem);
  }

  /** Requests a reply from the leading tab and takes over if there is none. Only in visible tabs. */
  #check(): void {
    if (this.#own || document.visibilityState === "hidden") return;
    const askedAt = Date.now();
    this.#channel.postMessage({ kind: "hello" } satisfies Message);
    setTimeout(() => {
      const replied = this.#own || this.#repliedAt >= askedAt || this.#stopping.signal.aborted;
      if (!replied && document.visibilityState !== "hidden") void this.#steal();
    }, REPLY_TIMEOUT_MS);
  }
}

/** Returns the ticket as it is `ms` after it was received: the time to the opening is relative to the response. */
function aged(ticket: Ticket, ms: number): Ticket {
  return typeof ticket.opensInMs === "number" ? { ...ticket, opensInMs: Math.max(0, ticket.opensInMs - ms) } : ticket;
}
