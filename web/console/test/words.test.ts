import assert from "node:assert/strict";
import { test } from "node:test";
import en from "../words/en.json" with { type: "json" };
import ko from "../words/ko.json" with { type: "json" };
import { brief, rate, shortName, stretch } from "../src/format.js";
import { languageOf, say, sayOf } from "../src/words.js";

const slots = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();

test("both languages have the same words with the same slots", () => {
  assert.deepEqual(Object.keys(ko), Object.keys(en));
  for (const [key, text] of Object.entries(en)) assert.deepEqual(slots(ko[key as keyof typeof ko]), slots(text), key);
});

test("the browser's languages are asked in their order", () => {
  assert.equal(languageOf(["de-DE", "ko-KR", "en"]), "ko");
  assert.equal(languageOf(["en-GB", "ko"]), "en");
  assert.equal(languageOf(["fr"]), "en");
});

test("words are filled in, and data without a word stands for itself", () => {
  assert.equal(say("shown", { from: 1, to: 2, all: 3 }), "1–2 of 3");
  assert.equal(sayOf("state", "OPEN"), "Open");
  assert.equal(sayOf("act ", "something new"), "something new");
});

test("figures are as people read them", () => {
  assert.deepEqual([rate(null), rate(0), rate(2.345), rate(1234.5)], ["–", "0.0", "2.3", "1,235"]);
  assert.deepEqual([stretch(null), stretch(90), stretch(600), stretch(10_000)], ["–", "90 s", "10 min", "3 h"]);
  assert.equal(shortName("daegi-scheduler-0-17-0badcafe"), "daegi-scheduler-0·0bad");
  assert.equal(brief({ policy: { maxActive: 5, entryUrl: null } }), "policy maxActive 5, entryUrl –");
});
