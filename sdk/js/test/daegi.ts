// daegi as far as a guard knows it: published keys, verdicts, completions.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { json } from "./server.js";

export interface Daegi {
  url: string;
  /** Null: it is away. */
  keys: object | null;
  verdict: object | null;
  keysAsked: number;
  verdictsAsked: number;
  completed: string[];
}

export async function daegi(context: TestContext): Promise<Daegi> {
  const room: Daegi = { url: "", keys: null, verdict: null, keysAsked: 0, verdictsAsked: 0, completed: [] };
  const server = createServer((request, response) => void answer(room, request, response));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  room.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return room;
}

async function answer(room: Daegi, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  if (request.url === "/.well-known/jwks.json") {
    room.keysAsked += 1;
    say(response, room.keys);
  } else if (request.url?.endsWith("/entry/verify")) {
    room.verdictsAsked += 1;
    say(response, room.verdict);
  } else {
    room.completed.push((JSON.parse(body) as { token: string }).token);
    say(response, { released: true });
  }
}

function say(response: ServerResponse, what: object | null): void {
  if (what === null) response.writeHead(503).end();
  else json(response, what);
}
