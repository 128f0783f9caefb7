// Announcements for screen readers: all changes of the headline, positions at intervals, and milestones of a countdown.

import type { Messages } from "./i18n.js";
import type { Screen } from "./screen.js";

/** Minimum interval between two announcements of a position. */
const POSITION_INTERVAL_MS = 30_000;
/** From this position on, every change is announced. */
const NEAR = 5;
/** When the time that is left is announced. */
const MILESTONES = [
  { leftMs: 10_000, text: "in10s" },
  { leftMs: 60_000, text: "in1min" },
  { leftMs: 600_000, text: "in10min" },
] as const;

/** Joins texts with or without a full stop to sentences: a screen reader reads "..". */
function sentences(texts: readonly string[]): string {
  return texts.map((text) => text.replace(/[.。…\s]+$/, "")).filter(Boolean).join(". ");
}

export class Announcer {
  #headline = "";
  #position = Number.POSITIVE_INFINITY;
  #announcedAt = Number.NEGATIVE_INFINITY;
  #countdown = { label: "", leftMs: 0 };

  constructor(
    readonly announce: (text: string) => void,
    readonly messages: Pick<Messages, "place" | "in10s" | "in1min" | "in10min">,
    readonly formatNumber: (value: number) => string = String,
    readonly now: () => number = () => performance.now(),
  ) {}

  /** Announces a screen if it changed. `details` are announced with the headline. */
  show(screen: Screen, details = ""): void {
    const place = screen.place ? `${this.messages.place}: ${this.formatNumber(screen.place.position)}. ${screen.place.eta}` : "";
    if (screen.headline !== this.#headline) {
      this.#headline = screen.headline;
      this.#announceScreen(sentences([screen.headline, screen.text, details, place]), screen);
    } else if (screen.place && this.#shouldAnnounce(screen.place.position)) {
      this.#announceScreen(place, screen);
    }
  }

  /** Announces the time that is left when it passes a milestone. */
  countdown(label: string, leftMs: number): void {
    const before = this.#countdown;
    this.#countdown = { label, leftMs };
    if (label !== before.label) return;
    const passed = MILESTONES.find((milestone) => leftMs <= milestone.leftMs && before.leftMs > milestone.leftMs);
    if (passed && leftMs > 0) this.announce(`${label}. ${this.messages[passed.text]}`);
  }

  #shouldAnnounce(position: number): boolean {
    const halved = position <= this.#position / 2 || (position <= NEAR && position < this.#position);
    return halved && this.now() - this.#announcedAt >= POSITION_INTERVAL_MS;
  }

  #announceScreen(text: string, screen: Screen): void {
    this.#announcedAt = this.now();
    this.#position = screen.place?.position ?? Number.POSITIVE_INFINITY;
    this.announce(text);
  }
}
