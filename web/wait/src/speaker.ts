// What a screen reader says: changes that matter, and a place only now and then.

import type { Scene } from "./scene.js";

/** Not more often than this, unless something happened. */
const PAUSE_MS = 30_000;
/** From here on every place is worth a word. */
const NEAR = 5;

export class Speaker {
  #headline = "";
  #position = Number.POSITIVE_INFINITY;
  #spokeAt = Number.NEGATIVE_INFINITY;

  constructor(
    readonly say: (text: string) => void,
    readonly placeWord: string,
    readonly now: () => number = () => performance.now(),
  ) {}

  show(scene: Scene): void {
    const place = scene.place ? `${this.placeWord}: ${scene.place.position}. ${scene.place.eta}` : "";
    if (scene.headline !== this.#headline) {
      this.#headline = scene.headline;
      this.#speak([scene.headline, scene.text, place].filter(Boolean).join(". "), scene);
    } else if (scene.place && this.#isWorthIt(scene.place.position)) {
      this.#speak(place, scene);
    }
  }

  #isWorthIt(position: number): boolean {
    const halved = position <= this.#position / 2 || (position <= NEAR && position < this.#position);
    return halved && this.now() - this.#spokeAt >= PAUSE_MS;
  }

  #speak(text: string, scene: Scene): void {
    this.#spokeAt = this.now();
    this.#position = scene.place?.position ?? Number.POSITIVE_INFINITY;
    this.say(text);
  }
}
