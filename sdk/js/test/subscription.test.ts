import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, TicketSubscription, ProblemError, Ticket } from "../src/index.js";
import { json, problem, room, say, stream, ticket } from "./server.js";

const DONE = ticket({ status: "COMPLETED", position: 0 });

/** Everything that is told until the end. */
function story(following: TicketSubscription): Promise<string[]> {
  const told: string[] = [];
  const shown = (ticket: Ticket) => `${ticket.status} ${ticket.position}`;
  following.on("ticket", (ticket) => told.push(shown(ticket)));
  following.on("enterable", (ticket) => told.push(`enterable ${ticket.pass}`));
  following.on("connection", (connection: Connection) => told.push(connection.state));
  return new Promise((resolve) => {
    following.on("end", () => resolve([...told, "end"]));
    following.on("problem", (problem: ProblemError) => resolve([...told, problem.code]));
  });
}

test("a stream tells everything, and the turn once", async (context) => {
  const line = await room(context, (request, response) => {
    assert.match(String(request.url), /\/me\/events$/);
    assert.equal(request.headers.authorization, "Bearer kim-concert-1");
    const say = stream(response);
    const enterable = ticket({ status: "ENTERABLE", position: 0, pass: "p" });
    for (const told of [ticket(), ticket({ position: 4 }), enterable, enterable, DONE]) say(told);
  });
  assert.deepEqual(await story(line.follow(ticket())), [
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

test("a stream that breaks off is resumed where it was", async (context) => {
  const seen: unknown[] = [];
  const line = await room(context, (request, response) => {
    seen.push(request.headers["last-event-id"]);
    const say = stream(response);
    if (seen.length === 1) {
      say(ticket(), "five");
      response.end();
    } else say(DONE);
  });
  const told = await story(line.follow(ticket()));
  assert.deepEqual(seen, [undefined, "five"]);
  assert.deepEqual(told, ["live", "WAITING 5", "lost", "live", "COMPLETED 0", "end"]);
});

test("where streams do not work polls do, as often as the server says", async (context) => {
  let polls = 0;
  const line = await room(context, (request, response) => {
    if (request.url?.endsWith("/events")) json(response, { not: "a stream" });
    else json(response, ++polls < 3 ? ticket({ position: 9 - polls }) : DONE);
  });
  const told = await story(line.follow(ticket()));
  assert.deepEqual(told, ["live", "polling", "WAITING 8", "WAITING 7", "COMPLETED 0", "end"]);
});

test("a server without streams to give is polled", async (context) => {
  const line = await room(context, (request, response) => {
    if (request.url?.endsWith("/events")) problem(response, 503, "UNAVAILABLE", 1);
    else json(response, DONE);
  });
  assert.deepEqual(await story(line.follow(ticket())), ["polling", "COMPLETED 0", "end"]);
});

test("an outage is told and survived", async (context) => {
  let asked = 0;
  const line = await room(context, (request, response) => {
    if (++asked < 3) request.socket.destroy();
    else stream(response)(DONE);
  });
  const told = await story(line.follow(ticket()));
  assert.deepEqual(told, ["lost", "lost", "live", "COMPLETED 0", "end"]);
});

test("a ticket that is not good any more ends it", async (context) => {
  const line = await room(context, (_, response) => problem(response, 410, "LINE_RESTARTED"));
  assert.deepEqual(await story(line.follow(ticket())), ["LINE_RESTARTED"]);
});

test("stopping is silent and closes the connection", async (context) => {
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

test("the problem that a stream ends with is the final one, without another request", async (context) => {
  let asked = 0;
  const line = await room(context, (_, response) => {
    asked++;
    stream(response)(ticket());
    say(response, "problem", { status: 410, code: "LINE_RESTARTED", detail: "the line was reset" });
    response.end();
  });
  const events = await story(line.follow(ticket()));
  assert.deepEqual([events, asked], [["live", "WAITING 5", "LINE_RESTARTED"], 1]);
});

test("a stream that ends with a problem that passes is opened again", async (context) => {
  let asked = 0;
  const line = await room(context, (_, response) => {
    const tell = stream(response);
    if (++asked > 1) return tell(DONE);
    say(response, "problem", { status: 503, code: "UNAVAILABLE", detail: "the store is unreachable" });
  });
  assert.deepEqual(await story(line.follow(ticket())), ["live", "lost", "live", "COMPLETED 0", "end"]);
});

test("changed texts of the page come over the stream, and once", async (context) => {
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
  await story(following);
  assert.deepEqual(messages, ["Doors open at 8."]);
  assert.deepEqual(addresses, ["events?page=one", "events?page=two"], "a new stream says what is shown");
});

test("changed texts of the page come with polls, too, and only to pages", async (context) => {
  let [polls, texts] = [0, 0];
  const line = await room(context, (request, response) => {
    if (request.url === "/wait/concert/page.json") json(response, { revision: "two", name: "", message: `${++texts}` });
    else if (request.url?.endsWith("/me")) json(response, ++polls % 3 ? ticket() : DONE);
    else response.writeHead(500).end();
  });
  const messages: unknown[] = [];
  const following = line.follow(ticket(), { page: "one", streams: false });
  following.on("page", ({ message }) => messages.push(message));
  assert.equal((await story(following)).at(-1), "end");
  assert.deepEqual([messages, texts], [["1"], 2]);
  await story(line.follow(ticket(), { streams: false }));
  assert.equal(texts, 2);
});

test("a stream that a newer one replaced is not opened again: polls follow", async (context) => {
  const asked: unknown[] = [];
  const line = await room(context, (request, response) => {
    asked.push(request.url?.split("/me")[1]);
    if (!request.url?.endsWith("/events")) return json(response, DONE);
    stream(response)(ticket());
    say(response, "problem", { status: 429, code: "RATE_LIMITED", detail: "a newer connection replaced this one" });
  });
  assert.deepEqual(await story(line.follow(ticket())), ["live", "WAITING 5", "polling", "COMPLETED 0", "end"]);
  assert.deepEqual(asked, ["/events", ""]);
});
