// What a service in Node puts in front of its endpoints: only people whom the waiting room let in get through, the
// others are sent to the waiting page. `daegi/guard` is for servers and needs Node; nothing of it is in the browser's part.

import { brought, findPass, type Carrier } from "./guard/carrier.js";
import { entryFrom, kidOf, type Entry } from "./guard/claims.js";
import { Internal } from "./guard/internal.js";
import { Keys, NoKeys } from "./guard/keys.js";
import { express, fastify, type ExpressMiddleware, type FastifyHook, type Protection } from "./guard/middleware.js";
import { Refusal } from "./guard/refusal.js";
import { complete, type GuardOptions, type Setup } from "./guard/setup.js";

export { findPass, type Carrier, type Entry, type ExpressMiddleware, type FastifyHook, type GuardOptions, type Protection, Refusal };
export { entryOf } from "./guard/middleware.js";
export { answerTo, type Answer, type RefusalCode } from "./guard/refusal.js";

/** A request that the guard admits. */
export interface Admission {
  /** The entry of the pass that counts. */
  entry: Entry;
  /** That pass, if the browser must keep it in the guard's cookie from now on. */
  keep: string | null;
}

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
    const entry = await this.#read(item, pass);
    await this.#confirm(item, pass);
    return entry;
  }

  /**
   * Checks a request for `item`, and which of its passes counts. Throws a `Refusal` if none does.
   *
   * A browser may bring two: one in its cookie and one in the address. A link must neither log a person out nor make them
   * another person. So the cookie counts while it is good, unless the address brings a pass of the same user that expires
   * later. A pass that does not count is not kept. Where both are refused, the refusal is that of the address.
   */
  async admit(item: string, request: Carrier): Promise<Admission> {
    const { address, kept } = brought(request, item);
    if (address === "") return { entry: await this.check(item, kept), keep: null };
    if (kept === "") return { entry: await this.check(item, address), keep: address };
    const [added, known] = [await this.#tried(item, address), await this.#tried(item, kept)];
    if (added instanceof Refusal && known instanceof Refusal) throw added;
    const inAddress = { entry: added, pass: address, keep: address };
    const inCookie = { entry: known, pass: kept, keep: null };
    const [first, second] = prefersAddress(added, known) ? [inAddress, inCookie] : [inCookie, inAddress];
    try {
      return await this.#confirmed(item, first);
    } catch (error) {
      const revoked = error instanceof Refusal && error.code === "PASS_REVOKED";
      if (revoked && !(second.entry instanceof Refusal)) return this.#confirmed(item, second);
      throw error;
    }
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

  /** The entry that a pass is proof of, without an online check. */
  async #read(item: string, pass: string): Promise<Entry> {
    if (pass === "") throw new Refusal("PASS_MISSING");
    const key = await this.#key(kidOf(pass));
    return entryFrom(pass, key, item, Math.floor(this.setup.now() / 1000), this.setup.clockSkewSeconds);
  }

  async #tried(item: string, pass: string): Promise<Entry | Refusal> {
    return this.#read(item, pass).catch((error: unknown) => {
      if (error instanceof Refusal) return error;
      throw error;
    });
  }

  async #confirmed(item: string, { entry, pass, keep }: { entry: Entry | Refusal; pass: string; keep: string | null }): Promise<Admission> {
    if (entry instanceof Refusal) throw entry;
    await this.#confirm(item, pass);
    return { entry, keep };
  }

  async #confirm(item: string, pass: string): Promise<void> {
    if (this.setup.online && !(await this.#isInside(item, pass))) throw new Refusal("PASS_REVOKED");
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

function prefersAddress(address: Entry | Refusal, cookie: Entry | Refusal): boolean {
  if (address instanceof Refusal) return false;
  return cookie instanceof Refusal || (address.userId === cookie.userId && address.expiresAt > cookie.expiresAt);
}
