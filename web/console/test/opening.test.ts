import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item, LineState, Opening } from "../src/api.js";
import { ServerClock } from "../src/clock.js";
import { countdown, people, timeOf } from "../src/format.js";
import { changesOf, chosenRound, errorsOf, fieldIn, fieldsOf, fromLocal, isDrawing, isOverdue, openingOf, planText, publishedAt, roundText, signatureIn, stageOf, toLocal } from "../src/opening.js";

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
  const drand = (round: number | null) => ({ kind: "drand", round }) as const;
  assert.deepEqual(changesOf({ ...fieldsOf(withMillis), usesBeacon: true, beacon: "7" }, withMillis), { beacon: drand(7) });
  assert.equal(openingOf({ ...fieldsOf(evening), usesBeacon: true, order: "arrival" }).beacon, null, "only a draw has a beacon");
  assert.deepEqual(openingOf({ ...fieldsOf(evening), usesBeacon: true }).beacon, drand(null), "the server chooses");
});

test("a round that the server chose moves with the time, and one that an operator named does not", () => {
  const at = (opensAt: string, round: number): Opening => ({ ...none, opensAt, order: "draw", beacon: { kind: "drand", round } });
  const opensAt = "2023-09-15T10:59:50.000Z";
  assert.equal(chosenRound(opensAt), 657_412);
  assert.equal(publishedAt(657_412), Date.parse(opensAt) + 10_000);
  const [chosen, named] = [at(opensAt, 657_412), at(opensAt, 657_500)];
  assert.deepEqual([fieldsOf(chosen).beacon, fieldsOf(named).beacon], ["", "657500"]);
  const later = toLocal("2023-09-15T11:10:00.000Z");
  const moved = changesOf({ ...fieldsOf(chosen), opensAt: later }, chosen);
  assert.deepEqual(moved, { opensAt: "2023-09-15T11:10:00.000Z", beacon: { kind: "drand", round: null } });
  assert.deepEqual(Object.keys(changesOf({ ...fieldsOf(named), opensAt: later }, named)), ["opensAt"]);
  assert.deepEqual(changesOf({ ...fieldsOf(chosen), closesAt: later }, chosen), { closesAt: "2023-09-15T11:10:00.000Z" });
  assert.equal(roundText(chosen, Date.parse(opensAt)), `Round 657412, published ${timeOf("2023-09-15T11:00:00.000Z", Date.parse(opensAt))}.`);
  assert.match(roundText({ ...chosen, opensAt: null, beacon: { kind: "drand", round: null } }, NOW), /when you open the line/);
});

test("a draw waits for its random number, which is late after some seconds", () => {
  const beacon = { round: 657_413, publishedAt: "2023-09-15T11:00:03.000Z", signature: null };
  const draw = { state: "COMMITTED", commitment: "", cohortSize: 3, beacon } as const;
  assert.equal(isDrawing({ draw, openedAt: null }), true);
  assert.equal(isDrawing({ draw: { ...draw, cohortSize: null }, openedAt: null }), false, "in the lobby");
  assert.equal(isDrawing({ draw: { ...draw, beacon: null }, openedAt: null }), false);
  assert.equal(isDrawing({ draw, openedAt: "2023-09-15T11:00:05.000Z" }), false);
  const published = Date.parse(beacon.publishedAt);
  assert.deepEqual([4_999, 5_000].map((late) => isOverdue(beacon, published + late)), [false, true]);
  assert.equal(isOverdue({ ...beacon, signature: "ab" }, published + 60_000), false);
});

test("a signature is pasted alone or as the response of a relay", () => {
  const signature = "b7".repeat(48);
  assert.equal(signatureIn(` ${signature.toUpperCase()}\n`), signature);
  assert.equal(signatureIn(`{"round":7,"randomness":"${"aa".repeat(32)}","signature":"${signature}"}`), signature);
  for (const bad of ["", "b7", `${signature}00`, `{"round":7}`, "z".repeat(96)]) assert.equal(signatureIn(bad), null, bad);
});

test("errors name the field, and unchanged times in the past are none", () => {
  const errors = (typed: object, before: Opening | null = null, now = NOW) => Object.keys(errorsOf({ ...fieldsOf(before), ...typed }, before, now));
  assert.deepEqual(errors({}), []);
  assert.deepEqual(errors({ opensAt: "2026-11-20T18:59" }), ["opensAt"]);
  assert.deepEqual(errors({ opensAt: "2026-11-20T20:00", lobbyAt: "2026-11-20T20:01" }), ["lobbyAt"]);
  assert.deepEqual(errors({ lobbyAt: "2026-11-20T18:00" }), [], "a lobby in the past is open");
  assert.deepEqual(errors({ opensAt: "2026-11-20T20:00", closesAt: "2026-11-20T20:00" }), ["closesAt"]);
  const drawn = { order: "draw", usesBeacon: true, opensAt: "2026-11-20T20:00" };
  const round = chosenRound(local("2026-11-20T20:00"));
  assert.deepEqual(errors({ ...drawn, beacon: "1.5" }), ["beacon"]);
  assert.deepEqual(errors({ ...drawn, beacon: "" }), []);
  assert.deepEqual(errors({ ...drawn, beacon: String(round) }), []);
  assert.deepEqual(errors({ ...drawn, beacon: String(round - 4) }), ["beacon"], "before the opening");
  assert.deepEqual(errors({ ...drawn, beacon: String(round + 300) }), ["beacon"], "long after it");
  assert.deepEqual(errors({ ...drawn, opensAt: "", beacon: String(round) }), ["beacon"], "no time");
  assert.deepEqual(errors({ ...drawn, usesBeacon: false, beacon: "1.5" }), []);
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
