import { createPublicKey, type KeyObject } from "node:crypto";
import type { ResolvedOptions } from "./options.js";

/** No fetch has succeeded yet, so signatures cannot be verified. */
export class KeysUnavailable extends Error {}

/** The members of a key that identify it and its algorithm; the others belong to its type. */
interface PublishedKey extends Record<string, unknown> {
  kid?: unknown;
  kty?: unknown;
  crv?: unknown;
  alg?: unknown;
}

/** The algorithm of each supported type of key. */
const ALGORITHMS: Record<string, string> = { "OKP Ed25519": "EdDSA", "EC P-256": "ES256", RSA: "RS256" };
/** Minimum size of an RSA key in bits (RFC 7518). */
const MIN_RSA_BITS = 2_048;

/**
 * Fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call. The keys are fetched again when they
 * are older than `keyTtlSeconds`, or when a pass names an unknown key id, because daegi may have rotated its keys.
 */
export class JwksClient {
  readonly #options: ResolvedOptions;
  #keys = new Map<string, KeyObject>();
  #fetchedAt: number | null = null;
  #lastFetch: number | null = null;
  #fetching: Promise<void> | null = null;

  constructor(options: ResolvedOptions) {
    this.#options = options;
  }

  /** Returns the key with this id, or undefined if daegi does not publish it. */
  async find(kid: string): Promise<KeyObject | undefined> {
    const known = this.#keys.get(kid);
    if (known === undefined) await (this.#fetching ?? this.#fetchIfDue());
    // One request fetches; the others use the cached key meanwhile.
    else if (this.#isOlderThan(this.#fetchedAt, this.#options.keyTtlSeconds) && this.#fetching === null) await this.#fetchIfDue();
    if (this.#fetchedAt === null) throw new KeysUnavailable();
    return this.#keys.get(kid);
  }

  /** Fetches unless the last attempt is more recent than `minFetchIntervalSeconds`. On failure the cached keys stay valid. */
  async #fetchIfDue(): Promise<void> {
    if (!this.#isOlderThan(this.#lastFetch, this.#options.minFetchIntervalSeconds)) return;
    this.#lastFetch = this.#options.now();
    this.#fetching = this.#fetch().catch(this.#options.onError);
    try {
      await this.#fetching;
    } finally {
      this.#fetching = null;
    }
  }

  async #fetch(): Promise<void> {
    const url = `${this.#options.publicUrl}/.well-known/jwks.json`;
    const response = await fetch(url, { signal: AbortSignal.timeout(this.#options.timeoutMs) });
    if (!response.ok) throw new Error(`${url} responded with ${response.status}`);
    const { keys } = (await response.json()) as { keys?: PublishedKey[] };
    if (!Array.isArray(keys)) throw new Error(`${url} did not return a key set`);
    this.#keys = new Map(keys.flatMap(usable));
    this.#fetchedAt = this.#lastFetch;
  }

  /** Returns whether `since` is at least so long ago. The absolute difference covers a clock that was set back. */
  #isOlderThan(since: number | null, seconds: number): boolean {
    return since === null || Math.abs(this.#options.now() - since) >= seconds * 1000;
  }
}

/** Imports a key. The set may contain keys of other types; they are skipped. */
function usable(published: PublishedKey): [string, KeyObject][] {
  const { kid, kty, crv, alg, x, y, n, e } = published;
  const algorithm = ALGORITHMS[kty === "RSA" ? "RSA" : `${kty} ${crv}`];
  if (algorithm === undefined || (alg ?? algorithm) !== algorithm || typeof kid !== "string") return [];
  try {
    // Without private members, and without others that Node might reject.
    const jwk = JSON.parse(JSON.stringify({ kty, crv, x, y, n, e }));
    const key = createPublicKey({ key: jwk, format: "jwk" });
    return (key.asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS) < MIN_RSA_BITS ? [] : [[kid, key]];
  } catch {
    return [];
  }
}
