// The countdown to the lobby or to the opening, by the server's clock.

import { countdownText, format, formatTime, type Messages } from "./i18n.js";
import type { NextEvent } from "./screen.js";

/** What the countdown controls: the page and its announcements, or test doubles. */
export interface CountdownView {
  countdown(label: string, left: string, opens: string): void;
}
export interface CountdownAnnouncer {
  countdown(label: string, leftMs: number): void;
}

export class Countdown {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #label = "";
  #opens = "";
  /** When the event happens, on the clock of `performance.now()`: the clock of the machine may be wrong, or change. */
  #target = 0;

  constructor(
    readonly view: CountdownView,
    readonly announcer: CountdownAnnouncer,
    readonly messages: Messages,
    readonly locale: string,
    readonly now: () => number = () => performance.now(),
  ) {}

  /** Counts down to an event, or stops. Each response of the server synchronizes the countdown again. */
  show(next: NextEvent | undefined): void {
    clearTimeout(this.#timer);
    if (!next) return;
    this.#target = this.now() + next.inMs;
    this.#label = this.label(next);
    this.#opens = next.opensAt ? formatTime(next.opensAt, Date.parse(next.opensAt) - Date.parse(next.at) + next.inMs, this.locale).text : "";
    this.#tick();
  }

  /** Returns what happens, and when. */
  label({ kind, at, inMs }: NextEvent): string {
    const { text, isToday } = formatTime(at, inMs, this.locale);
    const { lobbyOpensAt, lobbyOpensOn, opensAt, opensOn } = this.messages;
    const [today, later] = kind === "lobby" ? [lobbyOpensAt, lobbyOpensOn] : [opensAt, opensOn];
    return format(isToday ? today : later, { t: text });
  }

  #tick(): void {
    const left = this.#target - this.now();
    const text = left > 0 ? countdownText(left, this.locale) : this.messages.anyMoment;
    this.view.countdown(this.#label, text, this.#opens);
    this.announcer.countdown(this.#label, left);
    if (left > 0) this.#timer = setTimeout(() => this.#tick(), left % 1000 || 1000);
  }
}
