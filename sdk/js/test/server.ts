// A scripted waiting-room server for tests.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type RoomOptions, WaitingRoom, type Ticket } from "../src/index.js";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export async function room(context: TestContext, answer: Answer, options: Partial<RoomOptions> = {}): Promise<WaitingRoom> {
  const server = createServer(answer);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return new WaitingRoom({ itemId: "concert", baseUrl: `http://127.0.0.1:${port}`, ...options });
}

export function ticket(changes: Partial<Ticket> = {}): Ticket {
  return {
    itemId: "concert",
    userId: "kim",
    token: "kim-concert-1",
    status: "WAITING",
    position: 5,
    waitingCount: 9,
    lineState: "OPEN",
    opensAt: null,
    opensInMs: null,
    beaconRound: null,
    drawing: false,
    cohortRank: null,
    lane: null,
    etaSeconds: null,
    pollAfterMs: 1,
    pass: null,
    passExpiresAt: null,
    entryUrl: null,
    ...changes,
  };
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export function problem(response: ServerResponse, status: number, code: string, after?: number, members: object = {}): void {
  const headers = after === undefined ? {} : { "retry-after": String(after) };
  response.writeHead(status, { "content-type": "application/problem+json", ...headers });
  response.end(JSON.stringify({ code, detail: code.toLowerCase(), status, ...members }));
}

/** Begins a stream and hands back how to say something in it. */
export function stream(response: ServerResponse): (ticket: Ticket, id?: string) => void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("retry: 1\n\n");
  return (ticket, id = "x") =>
    void response.write(`id: ${id}\nevent: ticket\ndata: ${JSON.stringify(ticket)}\n\n`);
}

/** An event of any name in a stream that has begun. */
export function say(response: ServerResponse, name: string, data: unknown): void {
  response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}
