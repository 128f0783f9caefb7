// Announcements for screen readers: all changes of the headline, and positions at intervals.

import type { Screen } from "./screen.js";

/** Minimum interval between two announcements of a position. */
const POSITION_INTERVAL_MS = 30_000;
/** From this position on, every change is announced. */
const NEAR = 5;

export class Announcer {
  #headline = "";
  #position = Number.POSITIVE_INFINITY;
  #announcedAt = Number.NEGATIVE_INFINITY;

  constructor(
    readonly announce: (text: string) => void,
    readonly placeWord: string,
    readonly now: () => number = () => performance.now(),
  ) {}

  show(screen: Screen): void {
    const place = screen.place ? `${this.placeWord}: ${screen.place.position}. ${screen.place.eta}` : "";
    if (screen.headline !== this.#headline) {
      this.#headline = screen.headline;
      this.#announceScreen([screen.headline, screen.text, place].filter(Boolean).join(". "), screen);
    } else if (screen.place && this.#shouldAnnounce(screen.place.position)) {
      this.#announceScreen(place, screen);
    }
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
