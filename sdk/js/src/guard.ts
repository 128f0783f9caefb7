// What a service in Node puts in front of its endpoints: only people whom the waiting room let in get through, the
// others are sent to the waiting page. `daegi/guard` is for servers and needs Node; nothing of it is in the browser's part.

import { findPass, type Carrier } from "./guard/carrier.js";
import { entryFrom, kidOf, type Entry } from "./guard/claims.js";
import { Internal } from "./guard/internal.js";
import { Keys, NoKeys } from "./guard/keys.js";
import { express, fastify, type ExpressMiddleware, type FastifyHook, type Protection } from "./guard/middleware.js";
import { Refusal } from "./guard/refusal.js";
import { complete, type GuardOptions, type Setup } from "./guard/setup.js";

export { findPass, type Carrier, type Entry, type ExpressMiddleware, type FastifyHook, type GuardOptions, type Protection, Refusal };
export { entryOf } from "./guard/middleware.js";
export { answerTo, type Answer, type RefusalCode } from "./guard/refusal.js";

/** Lets in only who was let in by the waiting room. One per process is enough: it keeps daegi's keys. */
export class Guard {
  readonly setup: Setup;
  readonly #keys: Keys;
  readonly #internal: Internal | null;

  constructor(options: GuardOptions) {
    this.setup = complete(options);
    this.#keys = new Keys(this.setup);
    this.#internal = this.setup.internal === null ? null : new Internal(this.setup.internal, this.setup.timeoutMs);
  }

  /** Checks a pass that somebody brings for `item`. Throws a `Refusal` if they are not let in. */
  async check(item: string, pass: string): Promise<Entry> {
    if (pass === "") throw new Refusal("PASS_MISSING");
    const key = await this.#key(kidOf(pass));
    const entry = entryFrom(pass, key, item, Math.floor(this.setup.now() / 1000), this.setup.clockSkewSeconds);
    if (this.setup.online && !(await this.#isInside(item, pass))) throw new Refusal("PASS_REVOKED");
    return entry;
  }

  /**
   * The person is done, such as with their order: makes room for the next one. Completing twice is no mistake; answers
   * whether this call ended the entry. Throws if daegi cannot be reached; the entry then ends when the pass expires.
   */
  async complete(entry: Entry): Promise<boolean> {
    if (this.#internal === null) throw new Error("the guard was not told daegi's internal address");
    return this.#internal.complete(entry.itemId, entry.token);
  }

  /** Where people wait for this item. */
  waitingPage(item: string): string {
    return `${this.setup.pages}/wait/${item}`;
  }

  /** Middleware for Express, Connect and everything else that speaks `(request, response, next)`. */
  express(protection: Protection): ExpressMiddleware {
    return express(this, protection);
  }

  /** A hook for Fastify: `{ onRequest: guard.fastify({ item: "concert" }) }`. */
  fastify(protection: Protection): FastifyHook {
    return fastify(this, protection);
  }

  /** The key, or null if nobody can say and everybody with a pass is let in. */
  async #key(kid: string) {
    try {
      const key = await this.#keys.find(kid);
      if (key === undefined) throw new Refusal("PASS_INVALID");
      return key;
    } catch (error) {
      if (!(error instanceof NoKeys)) throw error;
      if (this.setup.whenAway === "refuse") throw new Refusal("UNAVAILABLE");
      return null;
    }
  }

  /** Offline is enough for most: a pass is short-lived. Online knows what happened since. */
  async #isInside(item: string, pass: string): Promise<boolean> {
    try {
      return (await this.#internal?.isInside(item, pass)) ?? false;
    } catch (error) {
      this.setup.onTrouble(error);
      if (this.setup.whenAway === "refuse") throw new Refusal("UNAVAILABLE");
      return true;
    }
  }
}
