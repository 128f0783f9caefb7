// What the browser keeps about a place, so that a reload, a second tab and tomorrow find it again.

export interface Place {
  userId: string;
  token?: string;
  /** The first position this ticket had, and the furthest it has come from there: 0 to 1. */
  from?: number;
  done?: number;
}

/** As much of `Storage` as is needed. */
export type Shelf = Pick<Storage, "getItem" | "setItem">;

export class Places {
  readonly key: string;
  readonly #shelf: Shelf | null;
  #place: Place;

  constructor(itemId: string, shelf: Shelf | null, newUser: () => string) {
    this.key = `daegi:${itemId}`;
    this.#shelf = shelf;
    this.#place = this.#read() ?? { userId: newUser() };
    this.#write();
  }

  get current(): Readonly<Place> {
    return this.#place;
  }

  /** Takes over what another tab has kept. */
  reload(): Readonly<Place> {
    this.#place = this.#read() ?? this.#place;
    return this.#place;
  }

  /** Keeps a ticket; another one begins anew. */
  keep(token: string): void {
    const { userId } = this.#place;
    if (this.#place.token !== token) this.#place = { userId, token };
    this.#write();
  }

  /** How far the person has come, 0 to 1. Never less than before, whatever the line does. */
  progress(position: number): number {
    const from = Math.max(this.#place.from ?? position, position);
    const now = from > 1 ? (from - position) / (from - 1) : 1;
    const done = Math.max(this.#place.done ?? 0, Math.min(1, now));
    this.#place = { ...this.#place, from: this.#place.from ?? from, done };
    this.#write();
    return done;
  }

  #read(): Place | null {
    try {
      const kept: unknown = JSON.parse(this.#shelf?.getItem(this.key) ?? "null");
      const isPlace = typeof kept === "object" && kept !== null && "userId" in kept;
      return isPlace && typeof kept.userId === "string" ? (kept as Place) : null;
    } catch {
      return null;
    }
  }

  #write(): void {
    try {
      this.#shelf?.setItem(this.key, JSON.stringify(this.#place));
    } catch {
      // A full or forbidden storage: the place lasts as long as this page does.
    }
  }
}

/** Nobody can guess it, so nobody can ask for this person's place by naming them. */
export function newUserId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export function browserShelf(): Shelf | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
