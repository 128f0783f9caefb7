// What happens on admission: a sound, a countdown, and the redirect.

import type { Ticket, WaitingRoom } from "../../../sdk/js/src/index.js";
import type { View } from "./view.js";
import type { Messages } from "./i18n.js";

/** Delay before the redirect, long enough to notice the admission. */
const GO_AFTER_MS = 2_500;

export class EntryFlow {
  #ticking: ReturnType<typeof setInterval> | undefined;
  #token = "";

  constructor(
    readonly room: WaitingRoom,
    readonly view: View,
    readonly alert: () => void,
    readonly messages: Messages,
  ) {}

  begin(ticket: Ticket): void {
    if (this.#token === ticket.token) return;
    this.#token = ticket.token;
    this.view.offer(ticket.entryUrl);
    if (ticket.entryUrl) this.view.text(this.messages.turnWait);
    this.alert();
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
    this.view.text(this.messages.turnGoing);
    setTimeout(() => {
      // `replace`, so that the back button does not lead to the waiting page again.
      if (this.#token) location.replace(address);
    }, GO_AFTER_MS);
  }
}

/** Returns whether this ticket was not redirected before. A user who comes back from the shop gets a link instead. */
function firstTime(token: string): boolean {
  try {
    if (sessionStorage.getItem("daegi:went") === token) return false;
    sessionStorage.setItem("daegi:went", token);
  } catch {
    // Without session storage every visit counts as the first.
  }
  return true;
}
