import { createPublicKey, type KeyObject } from "node:crypto";
import type { Setup } from "./setup.js";

/** No keys were ever had, so nobody can say whether a pass is genuine. */
export class NoKeys extends Error {}

interface PublishedKey {
  kid?: unknown;
  kty?: unknown;
  crv?: unknown;
  x?: unknown;
}

/**
 * The keys that daegi publishes. They are kept, so that checking a pass asks nobody; they are fetched anew when they are
 * old, or when a pass names one that is not known: daegi may have begun to sign with it.
 */
export class Keys {
  readonly #setup: Setup;
  #known = new Map<string, KeyObject>();
  #fetched: number | null = null;
  #asked: number | null = null;
  #asking: Promise<void> | null = null;

  constructor(setup: Setup) {
    this.#setup = setup;
  }

  /** The key of this id, if daegi has published it. */
  async find(kid: string): Promise<KeyObject | undefined> {
    const known = this.#known.get(kid);
    if (known === undefined) await (this.#asking ?? this.#ask());
    // While somebody asks, everybody else goes on with what is known.
    else if (this.#isOver(this.#fetched, this.#setup.refreshSeconds) && this.#asking === null) await this.#ask();
    if (this.#fetched === null) throw new NoKeys();
    return this.#known.get(kid);
  }

  /** Asks, unless daegi was asked a moment ago, with or without success. What is known stays known meanwhile. */
  async #ask(): Promise<void> {
    if (!this.#isOver(this.#asked, this.#setup.pauseSeconds)) return;
    this.#asked = this.#setup.now();
    this.#asking = this.#fetch().catch(this.#setup.onTrouble);
    try {
      await this.#asking;
    } finally {
      this.#asking = null;
    }
  }

  async #fetch(): Promise<void> {
    const url = `${this.#setup.room}/.well-known/jwks.json`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(this.#setup.timeoutMs) });
    if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
    const { keys } = (await answer.json()) as { keys?: PublishedKey[] };
    if (!Array.isArray(keys)) throw new Error(`${url} is no key set`);
    this.#known = new Map(keys.flatMap(usable));
    this.#fetched = this.#asked;
  }

  /** Whether this was so long ago. A clock that was set back must not make it last for ever. */
  #isOver(since: number | null, seconds: number): boolean {
    return since === null || Math.abs(this.#setup.now() - since) >= seconds * 1000;
  }
}

/** A set may hold keys of other kinds, for others. */
function usable({ kid, kty, crv, x }: PublishedKey): [string, KeyObject][] {
  if (kty !== "OKP" || crv !== "Ed25519" || typeof kid !== "string" || typeof x !== "string") return [];
  try {
    return [[kid, createPublicKey({ key: { kty, crv, x }, format: "jwk" })]];
  } catch {
    return [];
  }
}
