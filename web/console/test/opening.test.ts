import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item, LineState, Opening } from "../src/api.js";
import { ServerClock } from "../src/clock.js";
import { countdown, people, timeOf } from "../src/format.js";
import { changesOf, errorsOf, fieldIn, fieldsOf, fromLocal, openingOf, planText, stageOf, toLocal } from "../src/opening.js";

const local = (text: string) => new Date(text).toISOString();
const NOW = Date.parse("2026-11-20T19:00:00");
const none: Opening = { opensAt: null, lobbyAt: null, closesAt: null, order: "arrival", beacon: null };
const evening: Opening = { ...none, opensAt: local("2026-11-20T20:00"), lobbyAt: local("2026-11-20T19:30"), closesAt: local("2026-11-20T23:00"), order: "draw" };

const stage = (lineState: LineState, opening: Opening | null, openedAt: string | null = null, now = NOW) =>
  stageOf({ lineState, openedAt, policy: { opening } as Item["policy"] }, now);

test("the stage follows the line state, and the times where another state hides it", () => {
  assert.equal(stage("OPEN", null), "none");
  assert.equal(stage("SCHEDULED", evening), "scheduled");
  assert.equal(stage("LOBBY", evening), "lobby");
  assert.equal(stage("CLOSED", evening), "closed");
  assert.equal(stage("PAUSED", evening), "scheduled");
  assert.equal(stage("PAUSED", none), "lobby");
  assert.equal(stage("DISABLED", evening, null, Date.parse("2026-11-20T19:30:00")), "lobby");
  assert.equal(stage("OPEN", evening, evening.opensAt), "opened");
  assert.equal(stage("DISABLED", evening, evening.opensAt, Date.parse("2026-11-20T23:00:00")), "closed");
});

test("times of the form are of the operator's time zone, with seconds only if there are any", () => {
  assert.equal(toLocal(local("2026-11-20T20:00")), "2026-11-20T20:00");
  assert.equal(toLocal(local("2026-11-20T20:00:07")), "2026-11-20T20:00:07");
  assert.equal(fromLocal("2026-11-20T20:00"), local("2026-11-20T20:00"));
  assert.deepEqual([toLocal(null), fromLocal("")], ["", null]);
});

test("only what differs is sent, and the time and order of a new opening", () => {
  assert.deepEqual(changesOf(fieldsOf(null), null), { opensAt: null, order: "arrival" });
  assert.deepEqual(changesOf({ ...fieldsOf(null), closesAt: "2026-11-20T23:00" }, null), { opensAt: null, order: "arrival", closesAt: evening.closesAt });
  assert.deepEqual(changesOf(fieldsOf(evening), evening), {});
  assert.deepEqual(changesOf({ ...fieldsOf(evening), closesAt: "" }, evening), { closesAt: null });
  const withMillis = { ...evening, lobbyAt: local("2026-11-20T19:30:00.123") };
  assert.deepEqual(changesOf({ ...fieldsOf(withMillis), beacon: "7" }, withMillis), { beacon: { kind: "drand", round: 7 } });
  assert.equal(openingOf({ ...fieldsOf(evening), beacon: "7", order: "arrival" }).beacon, null, "only a draw has a beacon");
});

test("errors name the field, and unchanged times in the past are none", () => {
  const errors = (typed: object, before: Opening | null = null, now = NOW) => Object.keys(errorsOf({ ...fieldsOf(before), ...typed }, before, now));
  assert.deepEqual(errors({}), []);
  assert.deepEqual(errors({ opensAt: "2026-11-20T18:59" }), ["opensAt"]);
  assert.deepEqual(errors({ opensAt: "2026-11-20T20:00", lobbyAt: "2026-11-20T20:01" }), ["lobbyAt"]);
  assert.deepEqual(errors({ lobbyAt: "2026-11-20T18:00" }), [], "a lobby in the past is open");
  assert.deepEqual(errors({ opensAt: "2026-11-20T20:00", closesAt: "2026-11-20T20:00" }), ["closesAt"]);
  assert.deepEqual(errors({ order: "draw", beacon: "1.5" }), ["beacon"]);
  assert.deepEqual(errors({ order: "draw", beacon: "4000000" }), []);
  const later = Date.parse("2026-11-20T22:00:00");
  assert.deepEqual(errors({ closesAt: "2026-11-20T22:30" }, evening, later), []);
  assert.deepEqual(errors({ closesAt: "2026-11-20T21:30" }, evening, later), ["closesAt"]);
});

test("an error response is shown at the field that it names first", () => {
  assert.equal(fieldIn("opening.lobbyAt must not be after opensAt"), "lobbyAt");
  assert.equal(fieldIn("order cannot change after the lobby has begun"), "order");
  assert.equal(fieldIn("the store does not answer"), null);
});

test("the plan is one sentence", () => {
  assert.equal(planText(evening, NOW), "Lobby opens 19:30, opens 20:00 in draw order, closes 23:00.");
  assert.equal(planText(evening, Date.parse("2026-11-20T19:40:00")), "Lobby open since 19:30, opens 20:00 in draw order, closes 23:00.");
  assert.equal(planText({ ...evening, lobbyAt: null, closesAt: null }, NOW, false), "Lobby opens immediately, opens 20:00 in draw order, does not close by itself.");
  assert.equal(planText(none, NOW), "Lobby open, opens in order of arrival when you press “Open now”, does not close by itself.");
});

test("times of today have no date, and counts of people agree with their noun", () => {
  assert.equal(timeOf(local("2026-11-20T20:00"), NOW), "20:00");
  assert.equal(timeOf(local("2026-11-21T20:00:07"), NOW), "Nov 21, 20:00:07");
  assert.equal(timeOf(local("2027-01-01T00:00"), NOW), "Jan 1, 2027, 00:00");
  assert.deepEqual([people(0), people(1), people(1234)], ["0 people", "1 person", "1,234 people"]);
});

test("a countdown ends at zero", () => {
  assert.deepEqual([-5, 0, 1, 59_001].map(countdown), ["00:00", "00:00", "00:01", "01:00"]);
  assert.deepEqual([3_600_000, 86_400_000 + 3_661_000].map(countdown), ["1:00:00", "1 d 01:01:01"]);
});

test("the server's clock runs on between responses, and a late response does not set it back", () => {
  let elapsed = 0;
  const clock = new ServerClock(() => elapsed);
  const at = (ms: number) => new Date(1_000_000 + ms).toISOString();
  clock.sync(at(0));
  elapsed = 1_500;
  assert.equal(clock.now(), 1_001_500);
  clock.sync(at(700));
  assert.equal(clock.now(), 1_001_500, "the response took 800 ms");
  clock.sync(at(600_000));
  assert.equal(clock.now(), 1_600_000);
  clock.sync(at(2_000));
  assert.equal(clock.now(), 1_002_000, "the server's clock was set back");
});
