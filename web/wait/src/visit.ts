// One person's visit: join or find the place, follow it, and begin again where that is right.

import { type Following, ProblemError, type Ticket, type WaitingRoom } from "../../../sdk/js/src/index.js";
import type { Places } from "./place.js";
import { outside, type Scene, sceneOf } from "./scene.js";
import type { Words } from "./words.js";

/** How long somebody who could not join waits before the next try, spread. */
const AGAIN_MS = 5_000;
/** A connection that comes back sooner is nobody's worry. */
const LOST_AFTER_MS = 2_000;

/** What a visit shows and does; the page itself, or a test. */
export interface Stage {
  scene(scene: Scene, ticket: Ticket | null, done: number): void;
  lost(isLost: boolean): void;
  notice(text: string): void;
}

export class Visit {
  #following: Following | null = null;
  #trying: ReturnType<typeof setTimeout> | undefined;
  #losing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly room: WaitingRoom,
    readonly places: Places,
    readonly words: Words,
    readonly stage: Stage,
  ) {}

  /** Goes on with the place there is, or joins. */
  async begin(): Promise<void> {
    const { token } = this.places.reload();
    if (token) this.#follow(token);
    else await this.join();
  }

  /** One attempt now; where it fails, further ones later. */
  async join(): Promise<void> {
    clearTimeout(this.#trying);
    this.#following?.stop();
    try {
      const ticket = await this.room.join(this.places.reload().userId);
      this.places.keep(ticket.token);
      this.#show(ticket);
      this.#follow(ticket.token);
    } catch (error) {
      const scene = outside(error instanceof ProblemError ? error.code : "", this.words);
      this.stage.scene(scene, null, 0);
      if (scene.kind === "missing") return;
      const wait = AGAIN_MS * (0.6 + 0.8 * Math.random());
      this.#trying = setTimeout(() => void this.join(), wait);
    }
  }

  async leave(): Promise<void> {
    const { token } = this.places.current;
    if (token) await this.room.leave(token).catch(() => this.#lost(true));
  }

  /** Another tab has a new ticket: this one shows the same. */
  adopt(): void {
    const before = this.places.current.token;
    const { token } = this.places.reload();
    if (token && token !== before) this.#follow(token);
  }

  #follow(token: string): void {
    this.#following?.stop();
    const following = this.room.follow(token);
    this.#following = following;
    following.on("ticket", (ticket) => this.#show(ticket));
    following.on("connection", ({ state }) => this.#lost(state === "lost"));
    following.on("problem", (problem) => void this.#refused(problem));
  }

  /** A ticket that is not good any more: the line began anew, or the keys are others. */
  async #refused(problem: ProblemError): Promise<void> {
    if (problem.code === "ITEM_NOT_FOUND") {
      this.stage.scene(outside(problem.code, this.words), null, 0);
      return;
    }
    this.stage.notice(this.words.restarted);
    await this.join();
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
