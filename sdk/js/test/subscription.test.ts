import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, TicketSubscription, ProblemError, Ticket } from "../src/index.js";
import { json, problem, room, say, stream, ticket } from "./server.js";

const DONE = ticket({ status: "COMPLETED", position: 0 });

/** Collects all events until the subscription ends. */
function collectEvents(following: TicketSubscription): Promise<string[]> {
  const events: string[] = [];
  const shown = (ticket: Ticket) => `${ticket.status} ${ticket.position}`;
  following.on("ticket", (ticket) => events.push(shown(ticket)));
  following.on("enterable", (ticket) => events.push(`enterable ${ticket.pass}`));
  following.on("connection", (connection: Connection) => events.push(connection.state));
  return new Promise((resolve) => {
    following.on("end", () => resolve([...events, "end"]));
    following.on("problem", (problem: ProblemError) => resolve([...events, problem.code]));
  });
}

test("a stream emits every ticket, and enterable once", async (context) => {
  const line = await room(context, (request, response) => {
    assert.match(String(request.url), /\/me\/events$/);
    assert.equal(request.headers.authorization, "Bearer kim-concert-1");
    const say = stream(response);
    const enterable = ticket({ status: "ENTERABLE", position: 0, pass: "p" });
    for (const sent of [ticket(), ticket({ position: 4 }), enterable, enterable, DONE]) say(sent);
  });
  assert.deepEqual(await collectEvents(line.follow(ticket())), [
    "live",
    "WAITING 5",
    "WAITING 4",
    "ENTERABLE 0",
    "enterable p",
    "ENTERABLE 0",
    "COMPLETED 0",
    "end",
  ]);
});

test("a broken stream is resumed with Last-Event-ID", async (context) => {
  const seen: unknown[] = [];
  const line = await room(context, (request, response) => {
    seen.push(request.headers["last-event-id"]);
    const say = stream(response);
    if (seen.length === 1) {
      say(ticket(), "five");
      response.end();
    } else say(DONE);
  });
  const events = await collectEvents(line.follow(ticket()));
  assert.deepEqual(seen, [undefined, "five"]);
  assert.deepEqual(events, ["live", "WAITING 5", "lost", "live", "COMPLETED 0", "end"]);
});

test("without streams the client polls at the given interval", async (context) => {
  let polls = 0;
  const line = await room(context, (request, response) => {
    if (request.url?.endsWith("/events")) json(response, { not: "a stream" });
    else json(response, ++polls < 3 ? ticket({ position: 9 - polls }) : DONE);
  });
  const events = await collectEvents(line.follow(ticket()));
  assert.deepEqual(events, ["live", "polling", "WAITING 8", "WAITING 7", "COMPLETED 0", "end"]);
});

test("a client that polls in a lobby polls shortly after the opening", async (context) => {
  const times: number[] = [];
  const lobby = ticket({ lineState: "LOBBY", position: null, opensAt: "2100-01-01T20:00:00Z", opensInMs: 300, pollAfterMs: 30_000 });
  const line = await room(context, (_, response) => {
    times.push(performance.now());
    json(response, times.length === 1 ? lobby : DONE);
  });
  context.mock.method(Math, "random", () => 0.1);
  const events = await collectEvents(line.follow(ticket(), { streams: false }));
  assert.deepEqual(events, ["polling", "WAITING null", "COMPLETED 0", "end"]);
  const gap = (times[1] ?? 0) - (times[0] ?? 0);
  assert.ok(gap >= 590 && gap < 5_000, `${gap} ms: after the opening, spread, and not after 30 s`);
});

test("a server that refuses streams is polled", async (context) => {
  const line = await room(context, (request, response) => {
    if (request.url?.endsWith("/events")) problem(response, 503, "UNAVAILABLE", 1);
    else json(response, DONE);
  });
  assert.deepEqual(await collectEvents(line.follow(ticket())), ["polling", "COMPLETED 0", "end"]);
});

test("an outage is reported and survived", async (context) => {
  let asked = 0;
  const line = await room(context, (request, response) => {
    if (++asked < 3) request.socket.destroy();
    else stream(response)(DONE);
  });
  const events = await collectEvents(line.follow(ticket()));
  assert.deepEqual(events, ["lost", "lost", "live", "COMPLETED 0", "end"]);
});

test("an invalid ticket ends the subscription", async (context) => {
  const line = await room(context, (_, response) => problem(response, 410, "LINE_RESTARTED"));
  assert.deepEqual(await collectEvents(line.follow(ticket())), ["LINE_RESTARTED"]);
});

test("stop emits nothing and closes the connection", async (context) => {
  const closed = new Promise<void>((resolve, reject) => {
    void room(context, (request, response) => {
      request.socket.on("close", () => resolve());
      stream(response)(ticket());
    }).then((line) => {
      const following = line.follow(ticket());
      following.on("ticket", () => following.stop());
      following.on("connection", ({ state }) => state === "lost" && reject(new Error("lost")));
    });
  });
  await closed;
});

test("a final problem event ends the subscription without another request", async (context) => {
  let asked = 0;
  const line = await room(context, (_, response) => {
    asked++;
    stream(response)(ticket());
    say(response, "problem", { status: 410, code: "LINE_RESTARTED", detail: "the line was reset" });
    response.end();
  });
  const events = await collectEvents(line.follow(ticket()));
  assert.deepEqual([events, asked], [["live", "WAITING 5", "LINE_RESTARTED"], 1]);
});

test("a transient problem event reopens the stream", async (context) => {
  let asked = 0;
  const line = await room(context, (_, response) => {
    const tell = stream(response);
    if (++asked > 1) return tell(DONE);
    say(response, "problem", { status: 503, code: "UNAVAILABLE", detail: "the store is unreachable" });
  });
  assert.deepEqual(await collectEvents(line.follow(ticket())), ["live", "lost", "live", "COMPLETED 0", "end"]);
});

test("changed page texts arrive once over the stream", async (context) => {
  const addresses: unknown[] = [];
  const line = await room(context, (request, response) => {
    addresses.push(request.url?.split("/me/")[1]);
    const tell = stream(response);
    const texts = { revision: "two", name: "Concert", message: "Doors open at 8." };
    say(response, "page", texts);
    say(response, "page", texts);
    if (addresses.length > 1) tell(DONE);
    else response.end();
  });
  const messages: unknown[] = [];
  const following = line.follow(ticket(), { page: "one" });
  following.on("page", ({ message }) => messages.push(message));
  await collectEvents(following);
  assert.deepEqual(messages, ["Doors open at 8."]);
  assert.deepEqual(addresses, ["events?page=one", "events?page=two"], "a new stream says what is shown");
});

test("changed page texts arrive with polls, for pages only", async (context) => {
  let [polls, texts] = [0, 0];
  const line = await room(context, (request, response) => {
    if (request.url === "/wait/concert/page.json") json(response, { revision: "two", name: "", message: `${++texts}` });
    else if (request.url?.endsWith("/me")) json(response, ++polls % 3 ? ticket() : DONE);
    else response.writeHead(500).end();
  });
  const messages: unknown[] = [];
  const following = line.follow(ticket(), { page: "one", streams: false });
  following.on("page", ({ message }) => messages.push(message));
  assert.equal((await collectEvents(following)).at(-1), "end");
  assert.deepEqual([messages, texts], [["1"], 2]);
  await collectEvents(line.follow(ticket(), { streams: false }));
  assert.equal(texts, 2);
});

test("a replaced stream is not reopened; the client polls", async (context) => {
  const asked: unknown[] = [];
  const line = await room(context, (request, response) => {
    asked.push(request.url?.split("/me")[1]);
    if (!request.url?.endsWith("/events")) return json(response, DONE);
    stream(response)(ticket());
    say(response, "problem", { status: 429, code: "RATE_LIMITED", detail: "a newer connection replaced this one" });
  });
  assert.deepEqual(await collectEvents(line.follow(ticket())), ["live", "WAITING 5", "polling", "COMPLETED 0", "end"]);
  assert.deepEqual(asked, ["/events", ""]);
});
