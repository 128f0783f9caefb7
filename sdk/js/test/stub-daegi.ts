// Stub of the endpoints that a guard calls: public keys, online checks, completions.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { json } from "./server.js";

export interface StubDaegi {
  url: string;
  /** Null: responds with 503. */
  keys: object | null;
  verdict: object | null;
  keyFetches: number;
  onlineChecks: number;
  completed: string[];
}

export async function startStub(context: TestContext): Promise<StubDaegi> {
  const stub: StubDaegi = { url: "", keys: null, verdict: null, keyFetches: 0, onlineChecks: 0, completed: [] };
  const server = createServer((request, response) => void respond(stub, request, response));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  stub.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return stub;
}

async function respond(stub: StubDaegi, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  if (request.url === "/.well-known/jwks.json") {
    stub.keyFetches += 1;
    send(response, stub.keys);
  } else if (request.url?.endsWith("/entry/verify")) {
    stub.onlineChecks += 1;
    send(response, stub.verdict);
  } else {
    stub.completed.push((JSON.parse(body) as { token: string }).token);
    send(response, { released: true });
  }
}

function send(response: ServerResponse, body: object | null): void {
  if (body === null) response.writeHead(503).end();
  else json(response, body);
}
