// Protects the endpoints of a Node service: only users admitted by the waiting room pass, all others are sent to the
// waiting page. `daegi/guard` is for servers and needs Node; the browser client contains nothing of it.

import { findPasses, findPass, type RequestParts } from "./guard/pass-source.js";
import { entryFrom, kidOf, type Entry } from "./guard/claims.js";
import { InternalClient } from "./guard/internal-client.js";
import { JwksClient, KeysUnavailable } from "./guard/jwks.js";
import { express, fastify, type ExpressMiddleware, type FastifyHook, type Protection } from "./guard/middleware.js";
import { Refusal } from "./guard/refusal.js";
import { withDefaults, type GuardOptions, type ResolvedOptions } from "./guard/options.js";

export { findPass, type RequestParts, type Entry, type ExpressMiddleware, type FastifyHook, type GuardOptions, type Protection, Refusal };
export { entryOf } from "./guard/middleware.js";
export { toResponse, type GuardResponse, type RefusalCode } from "./guard/refusal.js";

/** The outcome of an authorized request. */
export interface Authorization {
  /** The entry of the chosen pass. */
  entry: Entry;
  /** The chosen pass if it came with the URL: the response must set the guard's cookie to it. */
  keep: string | null;
}

/** Accepts only users admitted by the waiting room. One per process is enough: it caches daegi's keys. */
export class Guard {
  readonly options: ResolvedOptions;
  readonly #keys: JwksClient;
  readonly #internal: InternalClient | null;

  constructor(options: GuardOptions) {
    this.options = withDefaults(options);
    this.#keys = new JwksClient(this.options);
    this.#internal = this.options.internalUrl === null ? null : new InternalClient(this.options.internalUrl, this.options.timeoutMs);
  }

  /** Checks a pass for `item`. Throws a `Refusal` if the pass is refused. */
  async check(item: string, pass: string): Promise<Entry> {
    const entry = await this.#read(item, pass);
    await this.#confirm(item, pass);
    return entry;
  }

  /**
   * Checks a request for `item` and chooses between its passes. Throws a `Refusal` if none is valid.
   *
   * A browser may send two, one in its cookie and one in the URL. A link must neither sign a user out nor replace them by
   * another user. Therefore a valid cookie wins unless the URL carries a pass of the same user that expires later. A pass
   * that was not chosen is not stored. If both are refused, the refusal is that of the URL.
   */
  async authorize(item: string, request: RequestParts): Promise<Authorization> {
    const { inUrl, stored } = findPasses(request, item);
    if (inUrl === "") return { entry: await this.check(item, stored), keep: null };
    if (stored === "") return { entry: await this.check(item, inUrl), keep: inUrl };
    const [urlEntry, storedEntry] = [await this.#tryRead(item, inUrl), await this.#tryRead(item, stored)];
    if (urlEntry instanceof Refusal && storedEntry instanceof Refusal) throw urlEntry;
    const urlPass = { entry: urlEntry, pass: inUrl, keep: inUrl };
    const storedPass = { entry: storedEntry, pass: stored, keep: null };
    const [first, second] = prefersUrl(urlEntry, storedEntry) ? [urlPass, storedPass] : [storedPass, urlPass];
    try {
      return await this.#confirmed(item, first);
    } catch (error) {
      const revoked = error instanceof Refusal && error.code === "PASS_REVOKED";
      if (revoked && !(second.entry instanceof Refusal)) return this.#confirmed(item, second);
      throw error;
    }
  }

  /**
   * Ends an entry, for example after the order was placed, so that daegi can admit the next user. Idempotent; returns
   * whether this call ended the entry. Throws if daegi is unreachable; the entry then ends when the pass expires.
   */
  async complete(entry: Entry): Promise<boolean> {
    if (this.#internal === null) throw new Error("internalUrl is not configured; it is required to complete entries");
    return this.#internal.complete(entry.itemId, entry.token);
  }

  /** Returns the URL of the item's waiting page. */
  waitingPage(item: string): string {
    return `${this.options.browserUrl}/wait/${item}`;
  }

  /** Middleware for Express, Connect and other frameworks with `(request, response, next)`. */
  express(protection: Protection): ExpressMiddleware {
    return express(this, protection);
  }

  /** A hook for Fastify: `{ onRequest: guard.fastify({ item: "concert" }) }`. */
  fastify(protection: Protection): FastifyHook {
    return fastify(this, protection);
  }

  /** Verifies a pass offline and returns its entry. */
  async #read(item: string, pass: string): Promise<Entry> {
    if (pass === "") throw new Refusal("PASS_MISSING");
    const key = await this.#key(kidOf(pass));
    return entryFrom(pass, key, item, Math.floor(this.options.now() / 1000), this.options.clockSkewSeconds);
  }

  async #tryRead(item: string, pass: string): Promise<Entry | Refusal> {
    return this.#read(item, pass).catch((error: unknown) => {
      if (error instanceof Refusal) return error;
      throw error;
    });
  }

  async #confirmed(item: string, { entry, pass, keep }: { entry: Entry | Refusal; pass: string; keep: string | null }): Promise<Authorization> {
    if (entry instanceof Refusal) throw entry;
    await this.#confirm(item, pass);
    return { entry, keep };
  }

  async #confirm(item: string, pass: string): Promise<void> {
    if (this.options.online && !(await this.#hasEntry(item, pass))) throw new Refusal("PASS_REVOKED");
  }

  /** Returns the key, or null if no keys are available and the guard fails open. */
  async #key(kid: string) {
    try {
      const key = await this.#keys.find(kid);
      if (key === undefined) throw new Refusal("PASS_INVALID");
      return key;
    } catch (error) {
      if (!(error instanceof KeysUnavailable)) throw error;
      if (this.options.onUnavailable === "failClosed") throw new Refusal("UNAVAILABLE");
      return null;
    }
  }

  /** Returns whether the entry has not ended since the pass was signed. */
  async #hasEntry(item: string, pass: string): Promise<boolean> {
    try {
      return (await this.#internal?.hasEntry(item, pass)) ?? false;
    } catch (error) {
      this.options.onError(error);
      if (this.options.onUnavailable === "failClosed") throw new Refusal("UNAVAILABLE");
      return true;
    }
  }
}

function prefersUrl(inUrl: Entry | Refusal, stored: Entry | Refusal): boolean {
  if (inUrl instanceof Refusal) return false;
  return stored instanceof Refusal || (inUrl.userId === stored.userId && inUrl.expiresAt > stored.expiresAt);
}
