import assert from "node:assert/strict";
import { test } from "node:test";
import { TicketSubscription, type WaitingRoom } from "../src/index.js";
import { json, room, ticket } from "./server.js";

class Page extends EventTarget {
  visibilityState = "visible";

  turn(state: "hidden" | "visible"): void {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

const page = new Page();
Object.assign(globalThis, { document: page });

const polling = (polled: (wait: number) => object) => (request: { url?: string }, response: never) => {
  if (request.url?.endsWith("/events")) return json(response, {});
  json(response, polled(Number(new URL(request.url ?? "", "http://x").searchParams.get("waitMs") ?? 0)));
};

test("a hidden tab uses long polls instead of timers", async (context) => {
  const waits: number[] = [];
  const line: WaitingRoom = await room(
    context,
    polling((wait) => {
      waits.push(wait);
      if (waits.length === 1) page.turn("hidden");
      return ticket(waits.length === 4 ? { status: "LEFT" } : {});
    }) as never,
  );
  const following = new TicketSubscription(line, "t");
  await new Promise((end) => following.on("end", end));
  assert.deepEqual(waits, [0, 25_000, 25_000, 25_000]);
  page.turn("visible");
});

test("a tab that becomes visible polls immediately", async (context) => {
  let polls = 0;
  const line: WaitingRoom = await room(
    context,
    polling(() => (++polls === 1 ? ticket({ pollAfterMs: 3_600_000 }) : ticket({ status: "LEFT" }))) as never,
  );
  const following = new TicketSubscription(line, "t");
  following.on("ticket", () => setImmediate(() => page.turn("visible")));
  await new Promise((end) => following.on("end", end));
  assert.equal(polls, 2);
});

test("a long poll that returns early without a change is not repeated immediately", async (context) => {
  const times: number[] = [];
  page.turn("hidden");
  const line: WaitingRoom = await room(
    context,
    polling(() => {
      times.push(Date.now());
      return ticket({ pollAfterMs: 150, ...(times.length === 4 && { status: "LEFT" }) });
    }) as never,
  );
  const following = new TicketSubscription(line, "t");
  await new Promise((end) => following.on("end", end));
  page.turn("visible");
  assert.ok(times.slice(1).every((time, n) => time - (times[n] ?? 0) >= 140), times.join(" "));
});
