import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { etaText, etaWindow } from "../src/eta.js";
import type { Messages } from "../src/i18n.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;
const NOW = Date.parse("2026-11-19T11:30:20Z");

const shown = (p50: number, p90: number, locale = "en-GB", now = NOW) =>
  etaText(messages, { p50, p90 }, now, locale, "Asia/Seoul").replace(/[\u2009\u202f]/g, " ").replace(/ – /g, "–");

test("an estimate is a time of day with a range", () => {
  assert.equal(shown(640, 1_280), "around 20:40 (20:30–20:55)");
  assert.equal(shown(200, 260), "around 20:34 (20:32–20:35)");
  assert.equal(shown(640, 1_280, "en-US"), "around 8:40 PM (8:30–8:55 PM)");
  assert.equal(shown(640, 1_280, "ko"), "around 20:40 (20:30 ~ 20:55)");
});

test("the range begins at the 10th percentile", () => {
  const { from } = etaWindow({ p10: 180, p50: 640, p90: 1_280 }, NOW);
  assert.equal(new Date(from).toISOString(), "2026-11-19T11:30:00.000Z");
});

test("what is near has no time, and what is unknown says so", () => {
  assert.equal(shown(10, 40), "Less than a minute");
  assert.equal(etaText(messages, null, NOW, "en"), "Not known yet");
});

test("a range over midnight has the date only if the wait is long", () => {
  assert.equal(shown(12_000, 14_400), "around 23:45 (23:00–0:45)");
  assert.match(shown(50_000, 54_000), /^around Fri.* 10:30 \(Fri.* 9:15–Fri.* 11:45\)$/);
});

test("the precision follows what is known", () => {
  const units = [[66, 120], [66 * 60, 67 * 60], [600, 1_800], [20_000, 30_000]].map(([p50 = 0, p90 = 0]) => {
    const { at, from, until } = etaWindow({ p50, p90 }, NOW);
    return [at, from, until].every((time) => time % 900_000 === 0) ? 15 : [at, until].every((time) => time % 300_000 === 0) ? 5 : 1;
  });
  assert.deepEqual(units, [1, 5, 5, 15], "a wait of 66 to 67 minutes is shown in steps of five");
});

test("the range contains the estimate and begins no earlier than now", () => {
  for (let p50 = 0; p50 < 20_000; p50 += 137) {
    for (const spread of [0, 30, 400, 5_000]) {
      const p90 = Math.max(60, p50 + spread);
      const { at, from, until } = etaWindow({ p50, p90 }, NOW);
      assert.ok(from >= NOW - 60_000 && until >= NOW + p90 * 1000, `${p50} ${p90}`);
      assert.ok(from <= at && at <= until, `${p50} ${p90}`);
      assert.ok(from <= Math.max(NOW, NOW + (p50 - spread) * 1000), "rounded outwards");
    }
  }
});
