import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { ProblemError } from "../src/index.js";
import { json, problem, room, ticket } from "./server.js";

test("a join sends the user id and returns the ticket", async (context) => {
  const line = await room(context, (request, response) => {
    assert.equal(request.method, "POST");
    assert.equal(request.url, "/api/v1/item/concert/waiting-queue");
    json(response, ticket({ userId: String(request.headers["user-id"]) }), 201);
  });
  assert.equal((await line.join("lee")).userId, "lee");
});

test("a join names the client for the operator's statistics, as the caller likes", async (context) => {
  const named: unknown[] = [];
  for (const options of [{}, { client: "page;load=834" }, { client: "" }]) {
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      named.push(request.headers["daegi-client"]);
      json(response, ticket(), 201);
    };
    await (await room(context, answer, options)).join("lee");
  }
  assert.deepEqual(named, ["sdk-js", "page;load=834", undefined]);
});

test("an invitation code is sent in the body, and nothing without one", async (context) => {
  const sent: string[] = [];
  const line = await room(context, async (request, response) => {
    sent.push(`${request.headers["user-id"]} ${request.headers["content-type"]} ${await text(request)}`);
    json(response, ticket({ lane: "members" }), 201);
  });
  assert.equal((await line.join("lee", { code: "초대-1" })).lane, "members");
  await line.join("kim");
  assert.deepEqual(sent, ['lee application/json {"code":"초대-1"}', "kim undefined "]);
});

test("a refused invitation code is a problem that no retry can help", async (context) => {
  const line = await room(context, (_, response) => problem(response, 403, "INVALID_CODE"));
  await assert.rejects(line.join("kim", { code: "x" }), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual([error.code, error.status, error.isTransient], ["INVALID_CODE", 403, false]);
    return true;
  });
});

test("a join can be cancelled", async (context) => {
  const line = await room(context, () => {});
  await assert.rejects(line.join("kim", { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("a token is never part of a URL", async (context) => {
  const asked: string[] = [];
  const line = await room(context, (request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    if (request.method === "DELETE") response.writeHead(204).end();
    else json(response, ticket());
  });
  await line.poll("secret", 20);
  await line.leave("secret");
  await line.draw("secret");
  const me = "/api/v1/item/concert/waiting-queue/me";
  assert.deepEqual(asked, [`GET ${me}?waitMs=20 Bearer secret`, `DELETE ${me} Bearer secret`, `GET ${me.replace(/me$/, "draw?proof")} Bearer secret`]);
});

test("a refused join is a ProblemError with its code", async (context) => {
  const line = await room(context, (_, response) => problem(response, 409, "SOLD_OUT"));
  await assert.rejects(line.join("kim"), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual([error.code, error.status, error.isTransient], ["SOLD_OUT", 409, false]);
    return true;
  });
});

test("a join before the lobby is refused with the times of the opening", async (context) => {
  const times = { opensAt: "2100-01-01T20:00:00Z", lobbyAt: "2100-01-01T19:30:00Z" };
  const line = await room(context, (_, response) => problem(response, 409, "NOT_OPEN_YET", 60, times));
  await assert.rejects(line.join("kim"), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual([error.code, error.isTransient, error.retryAfterMs], ["NOT_OPEN_YET", false, 60_000]);
    assert.deepEqual({ opensAt: error.opensAt, lobbyAt: error.lobbyAt }, times);
    return true;
  });
});

test("a blocked user gets the reason and where to complain", async (context) => {
  const blocked = { reason: "Too many accounts.", rule: "6f1c0a52d0a94be1", until: null, contactUrl: "https://shop.example/help" };
  const line = await room(context, (_, response) => problem(response, 403, "BLOCKED", undefined, { blocked }));
  await assert.rejects(line.join("kim"), (error) => {
    assert.ok(error instanceof ProblemError && !error.isTransient);
    assert.deepEqual(error.blocked, blocked);
    return true;
  });
});

test("a problem without times has none", async (context) => {
  const line = await room(context, (_, response) => problem(response, 409, "NOT_OPEN_YET", 60, { opensAt: 5 }));
  await assert.rejects(line.join("kim"), (error) => error instanceof ProblemError && error.opensAt === null && error.lobbyAt === null);
});

test("an error without a problem body still has a retry delay", async (context) => {
  const line = await room(context, (_, response) => {
    response.writeHead(502, { "retry-after": "2" }).end("<html>bad gateway");
  });
  await assert.rejects(line.line(), (error) => {
    assert.ok(error instanceof ProblemError && error.isTransient);
    return error.retryAfterMs === 2000;
  });
});

test("times are relative to the server's clock", async (context) => {
  const line = await room(context, (_, response) => {
    response.setHeader("date", "Fri, 01 Jan 2100 00:00:00 GMT");
    json(response, {});
  });
  await line.line();
  assert.equal(new Date(line.now()).getUTCFullYear(), 2100);
});
