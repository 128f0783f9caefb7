import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ticket } from "../../../sdk/js/src/index.js";
import { joinErrorScreen, screenFor } from "../src/screen.js";
import { clock, formatEta, type Messages } from "../src/i18n.js";
import { readFileSync } from "node:fs";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;

const TICKET: Ticket = {
  itemId: "concert",
  userId: "kim",
  token: "t",
  status: "WAITING",
  position: 4,
  waitingCount: 10,
  lineState: "OPEN",
  etaSeconds: { p50: 170, p90: 290 },
  pollAfterMs: 1000,
  pass: null,
  passExpiresAt: null,
  entryUrl: null,
};

test("a waiting user sees position and estimate", () => {
  const screen = screenFor(TICKET, messages);
  assert.equal(screen.kind, "waiting");
  assert.deepEqual(screen.place, { position: 4, ahead: 3, behind: 6, eta: "3–5 minutes" });
});

test("a stopped line shows the reason and keeps the position", () => {
  for (const [lineState, headline] of [
    ["PAUSED", "The line is paused"],
    ["SOLD_OUT", "Sold out"],
    ["DISABLED", "The line is closed"],
    ["RECOVERING", "One moment, please"],
    ["HELD", "Entry is on hold"],
    ["A_STATE_OF_TOMORROW", "Entry is on hold"],
  ] as const) {
    const screen = screenFor({ ...TICKET, lineState, etaSeconds: null }, messages);
    assert.deepEqual([screen.kind, screen.headline, screen.place?.position], ["still", headline, 4]);
  }
});

test("every end reason has its own text", () => {
  const ends = ["EXPIRED", "COMPLETED", "LEFT", "ABANDONED", "REPLACED"] as const;
  const scenes = ends.map((status) => screenFor({ ...TICKET, status, position: 0 }, messages));
  assert.ok(scenes.every(({ kind }) => kind === "ended"));
  assert.equal(new Set(scenes.map(({ headline }) => headline)).size, ends.length);
});

test("a refused join shows the reason", () => {
  for (const [code, status, headline] of [
    ["SOLD_OUT", 409, "Sold out"],
    ["QUEUE_DISABLED", 409, "The line is closed"],
    ["LINE_FULL", 429, "The line is full"],
    ["STORE_FULL", 503, "Very busy right now"],
    ["RATE_LIMITED", 429, "Too many requests"],
    ["UNAVAILABLE", 503, "We will be right back"],
    ["", 0, "We will be right back"],
    ["A_CODE_OF_TOMORROW", 403, "You could not join the line"],
    ["A_CODE_OF_TOMORROW", 503, "We will be right back"],
  ] as const) {
    const screen = joinErrorScreen(code, status, messages);
    assert.deepEqual([screen.kind, screen.headline], ["outside", headline], code);
    assert.ok(screen.text);
  }
  assert.equal(joinErrorScreen("ITEM_NOT_FOUND", 404, messages).kind, "missing");
});

test("durations are formatted as the server formats them", () => {
  const eta = (p50: number, p90: number) => formatEta(messages, { p50, p90 });
  assert.equal(eta(10, 40), "Less than a minute");
  assert.equal(eta(50, 60), "About a minute");
  assert.equal(eta(298, 300), "About 5 minutes");
  assert.equal(eta(5_000, 9_000), "1–3 hours");
  assert.equal(formatEta(messages, null), "Not known yet");
  assert.deepEqual([clock(61_000), clock(3_661_000), clock(-5)], ["1:01", "1:01:01", "0:00"]);
});
