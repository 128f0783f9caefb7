import type { ServerResponse } from "node:http";
import type { Guard } from "../guard.js";
import { passCookie, type RequestParts } from "./pass-source.js";
import type { Entry } from "./claims.js";
import { isItem } from "./item.js";
import { toResponse, Refusal, type GuardResponse } from "./refusal.js";

/** How a route is protected. */
export interface Protection {
  /** The item, or a function that takes it from the request. A request without an item gets 404. */
  item: string | ((request: never) => string | null | undefined);
  /** Completes the entry after each successful response (2xx), so that daegi can admit the next user. */
  completeOnSuccess?: boolean;
}

export type ExpressMiddleware = (request: RequestParts, response: ServerResponse, next: (error?: unknown) => void) => void;

/** The part of Fastify's reply that the guard uses, so that its types are not a dependency. */
export interface FastifyReply {
  raw: ServerResponse;
  code(status: number): FastifyReply;
  header(name: string, value: string): FastifyReply;
  headers(values: Record<string, string>): FastifyReply;
  send(body: Uint8Array): unknown;
}

export type FastifyHook = (request: RequestParts, reply: FastifyReply) => Promise<unknown>;

/** The entry with a cookie to set, or the response to a refused request. */
type Outcome = { entry: Entry; cookie: string | null } | { response: GuardResponse };

/** Keyed by request, so that request types need no extension. */
const entries = new WeakMap<object, Entry>();

/** Returns the entry of an authorized request. */
export function entryOf(request: object): Entry {
  const entry = entries.get(request);
  if (entry === undefined) throw new Error("this route is not behind a guard");
  return entry;
}

export function express(guard: Guard, protection: Protection): ExpressMiddleware {
  return (request, response, next) => {
    const proceed = (outcome: Outcome) => {
      if ("response" in outcome) {
        response.writeHead(outcome.response.status, outcome.response.headers).end(outcome.response.body);
        return;
      }
      if (outcome.cookie !== null) response.appendHeader("set-cookie", outcome.cookie);
      if (protection.completeOnSuccess) completeAfter(guard, response, outcome.entry);
      next();
    };
    authorize(guard, protection, request).then(proceed).catch(next);
  };
}

export function fastify(guard: Guard, protection: Protection): FastifyHook {
  return async (request, reply) => {
    const outcome = await authorize(guard, protection, request);
    if ("response" in outcome) {
      const { status, headers, body } = outcome.response;
      // As bytes: Fastify would append a charset to the content type of a string.
      return reply.code(status).headers(headers).send(Buffer.from(body));
    }
    if (outcome.cookie !== null) reply.header("set-cookie", outcome.cookie);
    if (protection.completeOnSuccess) completeAfter(guard, reply.raw, outcome.entry);
    return undefined;
  };
}

async function authorize(guard: Guard, protection: Protection, request: RequestParts): Promise<Outcome> {
  const named = typeof protection.item === "string" ? protection.item : protection.item(request as never);
  const item = isItem(named) ? named : null;
  try {
    if (item === null) throw new Refusal("ITEM_NOT_FOUND");
    const { entry, keep } = await guard.authorize(item, request);
    entries.set(request, entry);
    const https = guard.options.browserUrl.startsWith("https:");
    return { entry, cookie: keep === null ? null : passCookie(entry, keep, guard.options.now(), https) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const accept = String(request.headers["accept"] ?? "");
    return { response: toResponse(error, accept, item === null ? "" : guard.waitingPage(item)) };
  }
}

/** Completes the entry after the response. A failure does not change the response: the entry expires. */
function completeAfter(guard: Guard, response: ServerResponse, entry: Entry): void {
  response.once("finish", () => {
    const succeeded = response.statusCode >= 200 && response.statusCode < 300;
    if (succeeded) guard.complete(entry).catch(guard.options.onError);
  });
}
