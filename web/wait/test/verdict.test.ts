import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync } from "node:fs";
import type { DrawRecord } from "../../../sdk/js/src/index.js";
import type { Messages } from "../src/i18n.js";
import { verdictOf } from "../src/verdict.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;
const NAMES = ["version", "fields", "commitment", "beacon", "seed", "number", "rank", "path", "token"];
const RECORD: DrawRecord = {
  itemId: "concert",
  version: 1,
  state: "DRAWN",
  commitment: "c0",
  reveal: "aa",
  cohortFirst: 64,
  cohortSize: 5,
  cohortRoot: "bb",
  beacon: null,
  seed: "cc",
  ticket: { number: 66, leaf: "dd", index: 2, path: [], rank: 3 },
};
const checks = (failed = "") => ({ checks: NAMES.map((name) => ({ name, ok: name !== failed })) });

test("a draw that passes all checks is correct", () => {
  const verdict = verdictOf(RECORD, checks(), { rank: 3, commitment: "c0" }, messages);
  assert.equal(verdict.text, messages.drawGood);
  assert.deepEqual(verdict.findings.map(({ ok }) => ok), Array(6).fill(true));
  assert.ok(!verdict.findings.some(({ text }) => text === messages.drawBeaconGood), "there is no beacon");
  const withBeacon = verdictOf({ ...RECORD, beacon: "ee" }, checks(), { rank: 3 }, messages);
  assert.equal(withBeacon.text, messages.drawGoodBeacon);
});

test("each failed check is named in words", () => {
  const seen = new Set<string>();
  for (const name of NAMES) {
    const { isGood, text, findings } = verdictOf({ ...RECORD, beacon: "ee" }, checks(name), { rank: 3 }, messages);
    assert.equal(isGood, false, name);
    assert.ok(text.startsWith(messages.drawBad) && text.length > messages.drawBad.length, name);
    assert.equal(findings.filter(({ ok }) => !ok).length, 1);
    seen.add(text);
  }
  assert.equal(seen.size, 6);
});

test("a record that does not fit this page is not correct", () => {
  const expected = { rank: 3, commitment: "c0" };
  const isGood = (changes: Partial<DrawRecord>, also = {}) => verdictOf({ ...RECORD, ...changes }, checks(), { ...expected, ...also }, messages).isGood;
  assert.equal(isGood({}), true);
  assert.equal(isGood({ commitment: "c1" }), false, "another commitment than before the opening");
  assert.equal(isGood({}, { commitment: undefined }), true, "a page that came later has none to compare");
  assert.equal(isGood({}, { rank: 4 }), false, "another place than the page shows");
  assert.equal(isGood({ state: "COMMITTED" }), false);
  const { ticket: _, ...without } = RECORD;
  assert.equal(verdictOf(without, checks(), expected, messages).isGood, false, "no proof for this ticket");
});

test("what was not checked is not confirmed", () => {
  const stopped = { checks: [{ name: "version", ok: true }, { name: "fields", ok: false }] };
  const { findings } = verdictOf(RECORD, stopped, { rank: 3 }, messages);
  assert.deepEqual(findings, [{ text: messages.drawRecordBad, ok: false }]);
});

test("an unknown check that fails is not passed over", () => {
  const { isGood, text } = verdictOf(RECORD, { checks: [{ name: "of-tomorrow", ok: false }] }, { rank: 3 }, messages);
  assert.deepEqual([isGood, text], [false, messages.drawBad]);
});
