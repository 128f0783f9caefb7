// Stores the ticket in the browser, so that a reload and other tabs find it.

export interface StoredTicket {
  userId: string;
  token?: string;
  /** The first position of this ticket, and the maximum progress from there: 0 to 1. */
  from?: number;
  done?: number;
  /** The commitment of the draw, noted before the opening. */
  commitment?: string;
  /** Whether the result of the draw was shown. */
  drawn?: boolean;
  /** The invitation code for the next join. */
  code?: string | undefined;
}

/** The used part of `Storage`. */
export type KeyValueStore = Pick<Storage, "getItem" | "setItem">;

export class TicketStorage {
  readonly key: string;
  readonly #store: KeyValueStore | null;
  #stored: StoredTicket;

  constructor(itemId: string, store: KeyValueStore | null, newUser: () => string) {
    this.key = `daegi:${itemId}`;
    this.#store = store;
    this.#stored = this.#read() ?? { userId: newUser() };
    this.#write();
  }

  get current(): Readonly<StoredTicket> {
    return this.#stored;
  }

  /** Loads what another tab has stored. */
  reload(): Readonly<StoredTicket> {
    this.#stored = this.#read() ?? this.#stored;
    return this.#stored;
  }

  /** Stores a ticket. Progress starts at 0 for a new one. A code is spent. */
  keep(token: string): void {
    const { userId } = this.#stored;
    this.#stored = this.#stored.token === token ? { ...this.#stored, code: undefined } : { userId, token };
    this.#write();
  }

  /** Stores the ticket of another device. */
  take(userId: string, token: string): void {
    this.#stored = { userId, token };
    this.#write();
  }

  /** Stores what the page learned about the draw of this ticket, or the code for the next join. */
  note(about: Pick<StoredTicket, "commitment" | "drawn" | "code">): void {
    this.#stored = { ...this.#stored, ...about };
    this.#write();
  }

  /** Returns the progress, 0 to 1. It never decreases. */
  progress(position: number): number {
    const from = Math.max(this.#stored.from ?? position, position);
    const now = from > 1 ? (from - position) / (from - 1) : 1;
    const done = Math.max(this.#stored.done ?? 0, Math.min(1, now));
    this.#stored = { ...this.#stored, from: this.#stored.from ?? from, done };
    this.#write();
    return done;
  }

  #read(): StoredTicket | null {
    try {
      const kept: unknown = JSON.parse(this.#store?.getItem(this.key) ?? "null");
      const isPlace = typeof kept === "object" && kept !== null && "userId" in kept;
      return isPlace && typeof kept.userId === "string" ? (kept as StoredTicket) : null;
    } catch {
      return null;
    }
  }

  #write(): void {
    try {
      this.#store?.setItem(this.key, JSON.stringify(this.#stored));
    } catch {
      // Storage is full or forbidden: the ticket lives as long as this page.
    }
  }
}

/** Returns a random user id. It cannot be guessed, so no other client can join as this user. */
export function newUserId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Returns the storage of this tab. */
export function browserSession(): KeyValueStore | null {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}

export function browserStorage(): KeyValueStore | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
