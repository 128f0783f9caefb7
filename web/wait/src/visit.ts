// Controls one visit: joins or continues with the stored ticket, follows it, and joins again where appropriate.

import { ProblemError, type Ticket, type WaitingRoom, type PageTexts } from "../../../sdk/js/src/index.js";
import { backoff } from "../../../sdk/js/src/sleep.js";
import type { TicketStorage } from "./ticket-storage.js";
import { joinErrorScreen, refusalIn, type Screen, screenFor } from "./screen.js";
import type { SubscriptionLike, Tabs } from "./tabs.js";
import type { Messages } from "./i18n.js";

/** Delay between attempts to join, and between polls of a closed line. */
const RETRY = { firstMs: 5_000, longestMs: 30_000 };
/** Minimum interval between two joins if the line refuses them although its state allows joins. */
const REFUSED_JOIN_INTERVAL_MS = 30_000;
/** Time over which the pages of a reset line spread their joins. */
const REJOIN_SPREAD_MS = 3_000;
/** A shorter interruption is not shown. */
const LOST_AFTER_MS = 2_000;
/** A ticket with one of these problems is void, and its holder may join again. */
const VOID_TICKET = new Set(["LINE_RESTARTED", "INVALID_TOKEN", "TOKEN_MISMATCH"]);

/** What a visit controls: the page, or a test double. */
export interface VisitView {
  screen(screen: Screen, ticket: Ticket | null, done: number): void;
  lost(isLost: boolean): void;
  notice(text: string): void;
  page(page: PageTexts): void;
}

export class VisitController {
  #following: SubscriptionLike | null = null;
  #next: ReturnType<typeof setTimeout> | undefined;
  #losing: ReturnType<typeof setTimeout> | undefined;
  /** Consecutive failed joins, and those of them refused because the line is closed. */
  #failures = 0;
  #refusals = 0;
  #joinedAt = 0;

  constructor(
    readonly room: Pick<WaitingRoom, "join" | "leave" | "line" | "page">,
    readonly storage: TicketStorage,
    readonly tabs: Pick<Tabs, "follow" | "alone">,
    readonly messages: Messages,
    readonly view: VisitView,
  ) {}

  /** Continues with the stored ticket, or joins. */
  async begin(): Promise<void> {
    if (this.#followStored(undefined)) return;
    // Two tabs that open at the same time join once.
    await this.tabs.alone(this.storage.key, async () => {
      if (!this.#followStored(undefined)) await this.join();
    });
  }

  /** Joins. Schedules further attempts if it fails. */
  async join(): Promise<void> {
    clearTimeout(this.#next);
    this.#following?.stop();
    this.#joinedAt = Date.now();
    try {
      const ticket = await this.room.join(this.storage.reload().userId);
      this.#failures = this.#refusals = 0;
      this.storage.keep(ticket.token);
      this.#show(ticket);
      this.#follow(ticket.token);
    } catch (error) {
      this.#showJoinError(error instanceof ProblemError ? error : null);
    }
  }

  async leave(): Promise<void> {
    const { token } = this.storage.current;
    if (token) await this.room.leave(token).catch(() => this.#lost(true));
  }

  /** Follows the new ticket of another tab. */
  adopt(): void {
    this.#followStored(this.storage.current.token);
  }

  /** Follows the stored ticket if it differs from `before`. */
  #followStored(before: string | undefined): boolean {
    const { token } = this.storage.reload();
    if (!token || token === before) return false;
    clearTimeout(this.#next);
    this.#follow(token);
    return true;
  }

  #follow(token: string): void {
    this.#following?.stop();
    const following = this.tabs.follow(token);
    this.#following = following;
    following.on("ticket", (ticket) => this.#show(ticket));
    following.on("connection", ({ state }) => this.#lost(state === "lost"));
    following.on("page", (page) => this.view.page(page));
    following.on("problem", (problem) => this.#handleProblem(problem, token));
  }

  /** Handles a ticket that cannot be followed: the line was reset or removed, or the keys changed. */
  #handleProblem(problem: ProblemError, token: string): void {
    if (!VOID_TICKET.has(problem.code)) return this.#showJoinError(problem);
    this.view.notice(this.messages.restarted);
    const rejoin = () =>
      this.tabs.alone(this.storage.key, async () => {
        if (!this.#followStored(token)) await this.join();
      });
    this.#next = setTimeout(() => void rejoin(), REJOIN_SPREAD_MS * Math.random());
  }

  /** Shows why the join failed, and retries later unless that cannot help. */
  #showJoinError(problem: ProblemError | null): void {
    const screen = joinErrorScreen(problem?.code ?? "", problem?.status ?? 0, this.messages);
    this.view.screen(screen, null, 0);
    if (screen.kind === "missing") return;
    if (problem?.status === 409) {
      this.#refusals++;
      return this.#watch(0);
    }
    const wait = backoff(this.#failures++, Math.random, RETRY);
    this.#after(Math.max(wait, spread(problem?.retryAfterMs ?? 0)), () => this.join());
  }

  /** Polls a closed line until it accepts joins. A join would be refused, and costs the store more. */
  #watch(looks: number): void {
    this.#after(backoff(looks, Math.random, RETRY), async () => {
      const refusal = await this.#look();
      if (refusal === null) this.#joinOnceMore();
      else if (refusal.status === 404) this.#showJoinError(refusal);
      else this.#watch(looks + 1);
    });
  }

  /** Returns why a join would fail now; `null` if it may succeed. */
  async #look(): Promise<ProblemError | null> {
    try {
      const { lineState } = await this.room.line();
      // The operator's message matters most while the line is closed.
      await this.room.page().then((page) => this.view.page(page), () => {});
      const code = refusalIn(lineState);
      if (code !== null) this.view.screen(joinErrorScreen(code, 409, this.messages), null, 0);
      return code === null ? null : new ProblemError(code, 409, "");
    } catch (error) {
      return error instanceof ProblemError ? error : new ProblemError("UNAVAILABLE", 0, "");
    }
  }

  /** Joins immediately, unless the line refused a join while its state allowed joins. */
  #joinOnceMore(): void {
    const since = Date.now() - this.#joinedAt;
    const wait = this.#refusals > 1 ? Math.max(0, REFUSED_JOIN_INTERVAL_MS - since) : 0;
    if (wait === 0) void this.join();
    else this.#after(spread(wait), () => this.join());
  }

  #after(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#next);
    this.#next = setTimeout(() => void work(), ms);
  }

  #show(ticket: Ticket): void {
    const done = ticket.status === "WAITING" ? this.storage.progress(ticket.position) : 1;
    this.view.screen(screenFor(ticket, this.messages), ticket, done);
  }

  #lost(isLost: boolean): void {
    if (isLost) {
      // Started at the first failure only.
      this.#losing ??= setTimeout(() => this.view.lost(true), LOST_AFTER_MS);
    } else {
      clearTimeout(this.#losing);
      this.#losing = undefined;
      this.view.lost(false);
    }
  }
}

/** Adds up to 25 %, so that clients do not act together. */
function spread(ms: number): number {
  return ms * (1 + 0.25 * Math.random());
}
