import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnFlow, periodQuery, shownShares, valueName } from "../src/visitors.js";

test("the query of a period changes once per minute", () => {
  const at = Date.parse("2026-11-20T20:00:59Z");
  assert.equal(periodQuery(24, at), "from=2026-11-19T20:00:00.000Z");
  assert.equal(periodQuery(24, at - 59_000), periodQuery(24, at));
  assert.notEqual(periodQuery(24, at + 1_000), periodQuery(24, at));
});

test("flows are shown per minute, and what was not recorded as a gap", () => {
  const minutes = { stepMinutes: 5, at: ["1970-01-01T00:05:00Z", "1970-01-01T00:10:00Z"], waiting: [], entered: [], joined: [50, null], admitted: [5, null], completed: [0, null] };
  assert.deepEqual(drawnFlow(minutes), [[300, 600], [10, null], [1, null], [0, null]]);
});

test("small shares are shown together", () => {
  const shares = Array.from({ length: 12 }, (_, n) => ({ name: `${n}`, count: 12 - n, share: 0.1 }));
  const shown = shownShares(shares);
  assert.equal(shown.length, 8);
  assert.deepEqual([shown.at(-1)?.name, shown.at(-1)?.count], ["rest", 15]);
  assert.deepEqual(shownShares(shares.slice(0, 8)), shares.slice(0, 8));
});

test("values have names, and codes those of countries and languages", () => {
  assert.deepEqual([valueName("country", "KR"), valueName("language", "ko")], ["South Korea", "Korean"]);
  assert.deepEqual([valueName("country", "unknown"), valueName("device", "phone"), valueName("access", "sdk")], ["Unknown", "Phone", "Client library"]);
  assert.equal(valueName("browser", "of a later release"), "of a later release");
});
