import type { ServerResponse } from "node:http";
import type { Guard } from "../guard.js";
import { cookieOf, type Carrier } from "./carrier.js";
import type { Entry } from "./claims.js";
import { isItem } from "./item.js";
import { answerTo, Refusal, type Answer } from "./refusal.js";

/** What a route is protected for. */
export interface Protection {
  /** The item, or how a request names it. A request that names none gets 404. */
  item: string | ((request: never) => string | null | undefined);
  /** Completes the entry after every good answer (2xx), so that the next person is let in. */
  completes?: boolean;
}

export type ExpressMiddleware = (request: Carrier, response: ServerResponse, next: (error?: unknown) => void) => void;

/** As much of Fastify's reply as is needed, so that its types are not. */
export interface FastifyReply {
  raw: ServerResponse;
  code(status: number): FastifyReply;
  header(name: string, value: string): FastifyReply;
  headers(values: Record<string, string>): FastifyReply;
  send(body: Uint8Array): unknown;
}

export type FastifyHook = (request: Carrier, reply: FastifyReply) => Promise<unknown>;

/** How a request goes on: in, with a cookie to set, or not. */
type Outcome = { entry: Entry; cookie: string | null } | { answer: Answer };

/** By request, so that nobody's types must be extended and no name be taken. */
const entries = new WeakMap<object, Entry>();

/** The entry of a request that a guard let through. */
export function entryOf(request: object): Entry {
  const entry = entries.get(request);
  if (entry === undefined) throw new Error("this route is not behind a guard");
  return entry;
}

export function express(guard: Guard, protection: Protection): ExpressMiddleware {
  return (request, response, next) => {
    const go = (outcome: Outcome) => {
      if ("answer" in outcome) {
        response.writeHead(outcome.answer.status, outcome.answer.headers).end(outcome.answer.body);
        return;
      }
      if (outcome.cookie !== null) response.appendHeader("set-cookie", outcome.cookie);
      if (protection.completes) completeAfter(guard, response, outcome.entry);
      next();
    };
    admit(guard, protection, request).then(go).catch(next);
  };
}

export function fastify(guard: Guard, protection: Protection): FastifyHook {
  return async (request, reply) => {
    const outcome = await admit(guard, protection, request);
    if ("answer" in outcome) {
      const { status, headers, body } = outcome.answer;
      // As bytes: Fastify would say more about the type of a text.
      return reply.code(status).headers(headers).send(Buffer.from(body));
    }
    if (outcome.cookie !== null) reply.header("set-cookie", outcome.cookie);
    if (protection.completes) completeAfter(guard, reply.raw, outcome.entry);
    return undefined;
  };
}

async function admit(guard: Guard, protection: Protection, request: Carrier): Promise<Outcome> {
  const named = typeof protection.item === "string" ? protection.item : protection.item(request as never);
  const item = isItem(named) ? named : null;
  try {
    if (item === null) throw new Refusal("ITEM_NOT_FOUND");
    const { entry, keep } = await guard.admit(item, request);
    entries.set(request, entry);
    const https = guard.setup.pages.startsWith("https:");
    return { entry, cookie: keep === null ? null : cookieOf(entry, keep, guard.setup.now(), https) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const accept = String(request.headers["accept"] ?? "");
    return { answer: answerTo(error, accept, item === null ? "" : guard.waitingPage(item)) };
  }
}

/** The work is done, so its answer stands: an entry that cannot be completed expires. */
function completeAfter(guard: Guard, response: ServerResponse, entry: Entry): void {
  response.once("finish", () => {
    const good = response.statusCode >= 200 && response.statusCode < 300;
    if (good) guard.complete(entry).catch(guard.setup.onTrouble);
  });
}
