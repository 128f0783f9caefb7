// Controls one visit: joins or continues with the stored ticket, follows it, and joins again where appropriate.

import { type Line, type LineState, ProblemError, type Ticket, type WaitingRoom, type PageTexts } from "../../../sdk/js/src/index.js";
import { backoff } from "../../../sdk/js/src/sleep.js";
import type { TicketStorage } from "./ticket-storage.js";
import { blockedScreen, type FormatEta, joinErrorScreen, outsideScreen, refusalIn, type Screen, screenFor } from "./screen.js";
import type { SubscriptionLike, Tabs } from "./tabs.js";
import type { Messages } from "./i18n.js";

/** Delay between attempts to join, and between polls of a closed line. */
const RETRY = { firstMs: 5_000, longestMs: 30_000 };
/** Delay between attempts to join while the user is blocked: the operator may remove the rule. */
const BLOCKED_RETRY = { firstMs: 30_000, longestMs: 300_000 };
/** Minimum interval between two joins if the line refuses them although its state allows joins. */
const REFUSED_JOIN_INTERVAL_MS = 30_000;
/** Delay between polls of a line whose lobby is late: its leader has a clock of its own, or none is elected. */
const LATE_LOBBY = { firstMs: 2_000, longestMs: 30_000 };
/** Longest time over which the pages of a scheduled line spread their joins when the lobby opens. */
const LOBBY_SPREAD_MS = { arrival: 5_000, draw: 15_000 };
/** Time over which the pages of a reset line spread their joins. */
const REJOIN_SPREAD_MS = 3_000;
/** A shorter interruption is not shown. */
const LOST_AFTER_MS = 2_000;
/** How long the headline says that the draw is done. */
const NEW_DRAW_MS = 10_000;
/** A ticket with one of these problems is void, and its holder may join again. */
const VOID_TICKET = new Set(["LINE_RESTARTED", "INVALID_TOKEN", "TOKEN_MISMATCH"]);

/**
 * What became of an invitation code: the page joined or moved with it, the user has its ticket already, it is kept for the next
 * join, the server refused it, or the server could not be reached.
 */
export type CodeResult = "joined" | "same" | "kept" | "refused" | "failed";

/** What a visit controls: the page, or a test double. */
export interface VisitView {
  screen(screen: Screen, ticket: Ticket | null, done: number): void;
  /** The line as the page polled it before it joined. */
  line(line: Line): void;
  /** The server refused the code that was kept for this join. `isJoined`: the page joined without it. */
  codeRefused(code: string, isJoined: boolean): void;
  /** A user who waits opened the page with this code. */
  codeOffered(code: string): void;
  lost(isLost: boolean): void;
  notice(text: string): void;
  /** The position grew because other users came back to theirs. `null`: the ticket is where it was before. */
  grew(from: number | null, to: number): void;
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
  /** The last ticket that was shown, and the time in which the result of its draw is news. */
  #shown: Ticket | null = null;
  #newDraw: ReturnType<typeof setTimeout> | undefined;
  /** The token that the last join was to replace. */
  #spent: string | undefined;
  /** Consecutive polls of a scheduled line after the time of its lobby. */
  #late = 0;
  /** Whether the ticket is being replaced by one of another lane. */
  #isMoving = false;
  /** The position before others came back to theirs, while that is on the page. */
  #before: number | null = null;

  constructor(
    readonly room: Pick<WaitingRoom, "join" | "leave" | "line" | "page">,
    readonly storage: TicketStorage,
    readonly tabs: Pick<Tabs, "follow" | "alone">,
    readonly messages: Messages,
    readonly view: VisitView,
    readonly formatEta: FormatEta,
    /** The state of the line when the server rendered the page. */
    readonly lineState: LineState = "",
  ) {}

  /** Continues with the stored ticket, or joins, unless the line refuses joins: then a join would only cost the store. */
  async begin(): Promise<void> {
    if (this.#followStored(undefined)) return;
    await (refusalIn(this.lineState) === null ? this.#joinUnlessStored() : this.#joinWhenOpen(0));
  }

  /** Joins. Schedules further attempts if it fails. */
  async join(): Promise<void> {
    clearTimeout(this.#next);
    this.#following?.stop();
    this.#shown = null;
    this.#joinedAt = Date.now();
    const { userId, token } = this.storage.reload();
    this.#spent = token;
    let refused: string | undefined;
    try {
      const ticket = await this.#joinWithCode(userId, (code) => (refused = code));
      this.#failures = this.#refusals = 0;
      this.storage.keep(ticket.token);
      this.#show(ticket);
      this.#follow(ticket.token);
    } catch (error) {
      this.#showJoinError(error instanceof ProblemError ? error : null);
    }
    if (refused !== undefined) this.view.codeRefused(refused, this.#shown !== null);
  }

  /** Joins with the code that is kept, if any, and without it if the server refuses it. */
  async #joinWithCode(userId: string, refused: (code: string) => void): Promise<Ticket> {
    const { code } = this.storage.current;
    if (!code) return this.room.join(userId);
    try {
      return await this.room.join(userId, { code });
    } catch (error) {
      if (!isRefusedCode(error)) throw error;
      this.storage.note({ code: undefined });
      refused(code);
      return this.room.join(userId);
    }
  }

  /** Takes the code of an invitation link: offers it to a user who waits, and keeps it for the next join otherwise. */
  invite(code: string): void {
    this.storage.reload();
    this.storage.note({ code });
    if (this.#shown) this.#show(this.#shown);
  }

  /** Uses a code that the user typed. A user who waits gives up the present place, unless the server refuses the code. */
  async redeem(code: string): Promise<CodeResult> {
    const before = this.#shown;
    if (before?.status === "WAITING") return this.#move(before, code);
    this.storage.note({ code });
    if (!before || before.status === "ENTERABLE") return "kept";
    await this.join();
    return "joined";
  }

  async #move(before: Ticket, code: string): Promise<CodeResult> {
    this.#isMoving = true;
    try {
      const ticket = await this.room.join(this.storage.current.userId, { code, token: before.token });
      this.storage.keep(ticket.token);
      this.#show(ticket);
      if (ticket.token === before.token) return "same";
      this.#follow(ticket.token);
      return "joined";
    } catch (error) {
      if (isRefusedCode(error)) return "refused";
      // The server may have moved the user although its response was lost.
      this.#follow(before.token);
      return "failed";
    } finally {
      this.#isMoving = false;
    }
  }

  /** The ticket that is shown. */
  get ticket(): Ticket | null {
    return this.#shown;
  }

  async leave(): Promise<void> {
    const { token } = this.storage.current;
    if (token) await this.room.leave(token).catch(() => this.#lost(true));
  }

  /** Follows the new ticket of another tab. */
  adopt(): void {
    this.#followStored(this.storage.current.token);
  }

  /** Joins, or follows the ticket of another tab that joined first: tabs that open at the same time join once. */
  #joinUnlessStored(): Promise<void> {
    return this.tabs.alone(this.storage.key, async () => {
      if (!this.#followStored(this.#spent)) await this.join();
    });
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
    following.on("ticket", (ticket) => {
      // The stream of the old ticket may end before the join returns the new one.
      if (!this.#isMoving || ticket.status !== "REPLACED") this.#show(ticket);
    });
    following.on("connection", ({ state }) => this.#lost(state === "lost"));
    following.on("page", (page) => this.view.page(page));
    following.on("problem", (problem) => this.#handleProblem(problem, token));
  }

  /** Handles a ticket that cannot be followed: the line was reset or removed, or the keys changed. */
  #handleProblem(problem: ProblemError, token: string): void {
    if (!VOID_TICKET.has(problem.code)) return this.#showJoinError(problem);
    this.view.notice(this.messages.restarted);
    this.#spent = token;
    // A line may be reset because its next opening is scheduled.
    this.#after(REJOIN_SPREAD_MS * Math.random(), () => this.#joinWhenOpen(0));
  }

  /** Shows why the join failed, and retries later unless that cannot help. */
  #showJoinError(problem: ProblemError | null): void {
    this.#shown = null;
    const screen = problem?.code === "BLOCKED" ? blockedScreen(problem.blocked, this.messages) : joinErrorScreen(problem?.code ?? "", problem?.status ?? 0, this.messages);
    this.view.screen(screen, null, 0);
    if (screen.kind === "missing") return;
    if (problem?.status === 409) {
      this.#refusals++;
      // The refusal has times of day only; the line also says how long until then by the server's clock.
      return void (problem.code === "NOT_OPEN_YET" ? this.#joinWhenOpen(0) : this.#watch(0, null));
    }
    const wait = backoff(this.#failures++, Math.random, problem?.code === "BLOCKED" ? BLOCKED_RETRY : RETRY);
    this.#after(Math.max(wait, spread(problem?.retryAfterMs ?? 0)), () => this.join());
  }

  /** Polls a line that accepts no joins after a delay. */
  #watch(looks: number, line: Line | null): void {
    this.#after(this.#watchDelay(looks, line), () => this.#joinWhenOpen(looks + 1));
  }

  /** Returns when to poll again: with backoff, but soon after the lobby opens, spread so that pages do not join together. */
  #watchDelay(looks: number, line: Line | null): number {
    const delay = backoff(looks, Math.random, RETRY);
    if (line?.lineState !== "SCHEDULED" || typeof line.lobbyInMs !== "number") return delay;
    this.#late = line.lobbyInMs > 0 ? 0 : this.#late + 1;
    if (this.#late > 0) return backoff(this.#late - 1, Math.random, LATE_LOBBY);
    return line.lobbyInMs <= delay ? line.lobbyInMs + lobbySpread(line) * Math.random() : delay;
  }

  /** Joins if the line accepts joins; otherwise shows why not, and polls the line until it does. A refused join costs more than a poll. */
  async #joinWhenOpen(looks: number): Promise<void> {
    const following = this.#following;
    const line = await this.room.line().catch((error) => (error instanceof ProblemError ? error : new ProblemError("UNAVAILABLE", 0, "")));
    // Another tab joined meanwhile.
    if (this.#following !== following) return;
    if (line instanceof ProblemError) return this.#handleLookFailure(looks, line);
    this.view.line(line);
    if (refusalIn(line.lineState) === null) return this.#joinOnceMore();
    this.view.screen(outsideScreen(line, this.messages), null, 0);
    this.#watch(looks, line);
    // The operator's message matters most while the line is closed.
    await this.room.page().then((page) => this.view.page(page), () => {});
  }

  #handleLookFailure(looks: number, problem: ProblemError): void {
    if (problem.status === 404) return this.#showJoinError(problem);
    // Later failures leave the reason on the page for which it waits.
    if (looks === 0) this.view.screen(joinErrorScreen(problem.code, problem.status, this.messages), null, 0);
    this.#watch(looks, null);
  }

  /** Joins immediately, unless the line refused a join while its state allowed joins. */
  async #joinOnceMore(): Promise<void> {
    const since = Date.now() - this.#joinedAt;
    const wait = this.#refusals > 1 ? Math.max(0, REFUSED_JOIN_INTERVAL_MS - since) : 0;
    if (wait === 0) await this.#joinUnlessStored();
    else this.#after(spread(wait), () => this.#joinUnlessStored());
  }

  #after(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#next);
    this.#next = setTimeout(() => void work(), ms);
  }

  #show(ticket: Ticket): void {
    const done = ticket.status !== "WAITING" ? 1 : ticket.position === null ? 0 : this.storage.progress(ticket.position);
    this.#explainGrowth(this.#shown, ticket);
    this.#shown = ticket;
    this.view.screen(screenFor(ticket, this.messages, this.formatEta, this.#isNewDraw(ticket)), ticket, done);
    const { code } = this.storage.current;
    if (!code || ticket.status !== "WAITING") return;
    this.storage.note({ code: undefined });
    this.view.codeOffered(code);
  }

  /** Says why a position grew, until the ticket is where it was. A ticket without a position has been drawn meanwhile. */
  #explainGrowth(shown: Ticket | null, { token, position, status }: Ticket): void {
    const before = shown?.token === token ? (this.#before ?? shown.position) : null;
    if (status !== "WAITING" || before === null || position === null) this.#before = null;
    else if (position > before) this.view.grew((this.#before = before), position);
    else if (this.#before !== null) this.view.grew((this.#before = null), position);
  }

  /** Returns whether the result of the ticket's draw is news, for some seconds and not again after a reload. */
  #isNewDraw(ticket: Ticket): boolean {
    if (ticket.cohortRank == null) return false;
    if (!this.storage.current.drawn) {
      this.storage.note({ drawn: true });
      this.#newDraw = setTimeout(() => {
        this.#newDraw = undefined;
        if (this.#shown) this.#show(this.#shown);
      }, NEW_DRAW_MS);
    }
    return this.#newDraw !== undefined;
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

/** Returns whether the server refused the code. One that it cannot even parse is an invalid request. */
function isRefusedCode(error: unknown): boolean {
  return error instanceof ProblemError && (error.code === "INVALID_CODE" || error.code === "INVALID_REQUEST");
}

/** Adds up to 25 %, so that clients do not act together. */
function spread(ms: number): number {
  return ms * (1 + 0.25 * Math.random());
}

/** Returns the time over which pages spread their joins. A draw lets them take longer, but must not begin without them. */
function lobbySpread({ order, lobbyInMs, opensInMs }: Line): number {
  if (order !== "draw") return LOBBY_SPREAD_MS.arrival;
  const lobbyMs = typeof opensInMs === "number" ? opensInMs - (lobbyInMs ?? 0) : Number.POSITIVE_INFINITY;
  return Math.min(LOBBY_SPREAD_MS.draw, lobbyMs / 4);
}
