import assert from "node:assert/strict";
import { test } from "node:test";
import en from "../i18n/en.json" with { type: "json" };
import ko from "../i18n/ko.json" with { type: "json" };
import { compact, rate, shortName, duration } from "../src/format.js";
import { languageOf, t, tEnum } from "../src/i18n.js";

const slots = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();

test("both languages have the same keys with the same placeholders", () => {
  assert.deepEqual(Object.keys(ko), Object.keys(en));
  for (const [key, text] of Object.entries(en)) assert.deepEqual(slots(ko[key as keyof typeof ko]), slots(text), key);
});

test("the browser's languages are tried in order", () => {
  assert.equal(languageOf(["de-DE", "ko-KR", "en"]), "ko");
  assert.equal(languageOf(["en-GB", "ko"]), "en");
  assert.equal(languageOf(["fr"]), "en");
});

test("placeholders are filled in, and unknown values are shown unchanged", () => {
  assert.equal(t("shown", { from: 1, to: 2, all: 3 }), "1–2 of 3");
  assert.equal(tEnum("state", "OPEN"), "Open");
  assert.equal(tEnum("act ", "something new"), "something new");
});

test("numbers and durations are formatted for reading", () => {
  assert.deepEqual([rate(null), rate(0), rate(2.345), rate(1234.5)], ["–", "0.0", "2.3", "1,235"]);
  assert.deepEqual([duration(null), duration(90), duration(600), duration(10_000)], ["–", "90 s", "10 min", "3 h"]);
  assert.equal(shortName("daegi-scheduler-0-17-0badcafe"), "daegi-scheduler-0·0bad");
  assert.equal(compact({ policy: { maxActive: 5, entryUrl: null } }), "policy maxActive 5, entryUrl –");
  assert.equal(compact({ lanes: [{ name: "a", weight: 1 }, { name: "b", weight: 2 }] }), "lanes name a, weight 1; name b, weight 2");
  assert.equal(compact({ lanes: [] }), "lanes –");
});
