// One person's visit: join or find the place, follow it, and begin again where that is right.

import { ProblemError, type Ticket, type WaitingRoom, type PageTexts } from "../../../sdk/js/src/index.js";
import { backoff } from "../../../sdk/js/src/pause.js";
import type { Places } from "./place.js";
import { outside, refusalIn, type Scene, sceneOf } from "./scene.js";
import type { Follower, Tabs } from "./tabs.js";
import type { Words } from "./words.js";

/** The time between attempts to join, and between looks at a closed line. */
const RETRY = { firstMs: 5_000, longestMs: 30_000 };
/** The shortest time between two joins at a line that refuses them although its state is a joinable one. */
const REFUSED_JOIN_INTERVAL_MS = 30_000;
/** Over which time the pages of a line that was reset join again. */
const REJOIN_SPREAD_MS = 3_000;
/** A connection that comes back sooner is not shown as lost. */
const LOST_AFTER_MS = 2_000;
/** A ticket with one of these problems is void, and its holder may join again. */
const VOID_TICKET = new Set(["LINE_RESTARTED", "INVALID_TOKEN", "TOKEN_MISMATCH"]);

/** What a visit shows and does; the page itself, or a test. */
export interface Stage {
  scene(scene: Scene, ticket: Ticket | null, done: number): void;
  lost(isLost: boolean): void;
  notice(text: string): void;
  page(page: PageTexts): void;
}

export class Visit {
  #following: Follower | null = null;
  #next: ReturnType<typeof setTimeout> | undefined;
  #losing: ReturnType<typeof setTimeout> | undefined;
  /** How many joins in a row failed, and how many of them because the line is closed. */
  #failures = 0;
  #refusals = 0;
  #joinedAt = 0;

  constructor(
    readonly room: Pick<WaitingRoom, "join" | "leave" | "line" | "page">,
    readonly places: Places,
    readonly tabs: Pick<Tabs, "follow" | "alone">,
    readonly words: Words,
    readonly stage: Stage,
  ) {}

  /** Goes on with the place there is, or joins. */
  async begin(): Promise<void> {
    if (this.#adopted(undefined)) return;
    // Two tabs that open at the same time join once.
    await this.tabs.alone(this.places.key, async () => {
      if (!this.#adopted(undefined)) await this.join();
    });
  }

  /** One attempt now; where it fails, further ones later. */
  async join(): Promise<void> {
    clearTimeout(this.#next);
    this.#following?.stop();
    this.#joinedAt = Date.now();
    try {
      const ticket = await this.room.join(this.places.reload().userId);
      this.#failures = this.#refusals = 0;
      this.places.keep(ticket.token);
      this.#show(ticket);
      this.#follow(ticket.token);
    } catch (error) {
      this.#keptOut(error instanceof ProblemError ? error : null);
    }
  }

  async leave(): Promise<void> {
    const { token } = this.places.current;
    if (token) await this.room.leave(token).catch(() => this.#lost(true));
  }

  /** Another tab has a new ticket: this one shows the same. */
  adopt(): void {
    this.#adopted(this.places.current.token);
  }

  /** Follows the ticket of this browser if it is another one than `before`. */
  #adopted(before: string | undefined): boolean {
    const { token } = this.places.reload();
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
    following.on("page", (page) => this.stage.page(page));
    following.on("problem", (problem) => this.#refused(problem, token));
  }

  /** The ticket cannot be followed any more: the line was reset or removed, or the keys changed. */
  #refused(problem: ProblemError, token: string): void {
    if (!VOID_TICKET.has(problem.code)) return this.#keptOut(problem);
    this.stage.notice(this.words.restarted);
    const rejoin = () =>
      this.tabs.alone(this.places.key, async () => {
        if (!this.#adopted(token)) await this.join();
      });
    this.#next = setTimeout(() => void rejoin(), REJOIN_SPREAD_MS * Math.random());
  }

  /** Shows why the person is not in line, and tries again later unless that cannot help. */
  #keptOut(problem: ProblemError | null): void {
    const scene = outside(problem?.code ?? "", problem?.status ?? 0, this.words);
    this.stage.scene(scene, null, 0);
    if (scene.kind === "missing") return;
    if (problem?.status === 409) {
      this.#refusals++;
      return this.#watch(0);
    }
    const wait = backoff(this.#failures++, Math.random, RETRY);
    this.#after(Math.max(wait, spread(problem?.retryAfterMs ?? 0)), () => this.join());
  }

  /** Looks at a closed line until it takes people: a join would be refused, and costs the store more. */
  #watch(looks: number): void {
    this.#after(backoff(looks, Math.random, RETRY), async () => {
      const refusal = await this.#look();
      if (refusal === null) this.#joinOnceMore();
      else if (refusal.status === 404) this.#keptOut(refusal);
      else this.#watch(looks + 1);
    });
  }

  /** Why a join would fail now; `null` if it may succeed. */
  async #look(): Promise<ProblemError | null> {
    try {
      const { lineState } = await this.room.line();
      // The operator's message matters most while the line is closed.
      await this.room.page().then((page) => this.stage.page(page), () => {});
      const code = refusalIn(lineState);
      if (code !== null) this.stage.scene(outside(code, 409, this.words), null, 0);
      return code === null ? null : new ProblemError(code, 409, "");
    } catch (error) {
      return error instanceof ProblemError ? error : new ProblemError("UNAVAILABLE", 0, "");
    }
  }

  /** Immediately, unless the line refused a join while its state was a joinable one. */
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
    const done = ticket.status === "WAITING" ? this.places.progress(ticket.position) : 1;
    this.stage.scene(sceneOf(ticket, this.words), ticket, done);
  }

  #lost(isLost: boolean): void {
    if (isLost) {
      // Counted from the first failure, however many follow.
      this.#losing ??= setTimeout(() => this.stage.lost(true), LOST_AFTER_MS);
    } else {
      clearTimeout(this.#losing);
      this.#losing = undefined;
      this.stage.lost(false);
    }
  }
}

/** Up to a quarter longer, so that no crowd forms. */
function spread(ms: number): number {
  return ms * (1 + 0.25 * Math.random());
}
