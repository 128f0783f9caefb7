// The person's turn: a sound, a title, a countdown, and the way in.

import type { Ticket, WaitingRoom } from "../../../sdk/js/src/index.js";
import type { Chime } from "./chime.js";
import type { View } from "./view.js";
import type { Words } from "./words.js";

/** Long enough to see and hear what happens before the page goes on. */
const GO_AFTER_MS = 2_500;

export class Turn {
  #ticking: ReturnType<typeof setInterval> | undefined;
  #token = "";

  constructor(
    readonly room: WaitingRoom,
    readonly view: View,
    readonly chime: Chime,
    readonly words: Words,
  ) {}

  begin(ticket: Ticket): void {
    if (this.#token === ticket.token) return;
    this.#token = ticket.token;
    this.view.offer(ticket.entryUrl);
    if (this.view.sound?.checked) this.chime.ring();
    this.#count(Date.parse(ticket.passExpiresAt ?? ""));
    if (ticket.entryUrl && firstTime(ticket.token)) this.#go(ticket.entryUrl);
  }

  end(): void {
    clearInterval(this.#ticking);
    this.#token = "";
  }

  #count(until: number): void {
    const tick = () => this.view.left(Number.isNaN(until) ? null : until - this.room.now());
    tick();
    clearInterval(this.#ticking);
    this.#ticking = setInterval(tick, 1_000);
  }

  #go(address: string): void {
    this.view.text(this.words.turnGoing);
    setTimeout(() => {
      // So that the way back leads to where the person came from, and not into the line again.
      if (this.#token) location.replace(address);
    }, GO_AFTER_MS);
  }
}

/** A person who comes back from the shop wants to be here: they are offered the way, not sent. */
function firstTime(token: string): boolean {
  try {
    if (sessionStorage.getItem("daegi:went") === token) return false;
    sessionStorage.setItem("daegi:went", token);
  } catch {
    // Without a memory every time is the first.
  }
  return true;
}
