import assert from "node:assert/strict";
import { test } from "node:test";
import type { Screen } from "../src/screen.js";
import { Announcer } from "../src/announcer.js";

const WORDS = { place: "StoredTicket", in10s: "10 s", in1min: "1 min", in10min: "10 min" };

const at = (position: number, headline = "In line"): Screen => ({
  kind: "waiting",
  headline,
  text: "",
  place: { position, ahead: 0, behind: 0, eta: "Soon" },
});

test("state changes are announced immediately, positions only after much progress", () => {
  const [announced, time] = [[] as string[], { now: 0 }];
  const announcer = new Announcer((text) => announced.push(text), WORDS, String, () => time.now);
  const show = (screen: Screen, after: number) => {
    time.now += after;
    announcer.show(screen);
  };
  show(at(1000), 0);
  for (let position = 999; position > 500; position--) show(at(position), 1000);
  assert.equal(announced.length, 1, "less than half of the way is done");
  show(at(500), 1000);
  show(at(100), 1000);
  assert.deepEqual(announced.slice(1), ["StoredTicket: 500. Soon"], "not twice within half a minute");
  show(at(100), 30_000);
  show(at(100, "Paused"), 1);
  assert.deepEqual(announced.slice(2), ["StoredTicket: 100. Soon", "Paused. StoredTicket: 100. Soon"]);
});

test("a countdown is announced at 10 min, 1 min and 10 s, and not each second", () => {
  const announced: string[] = [];
  const announcer = new Announcer((text) => announced.push(text), WORDS);
  for (let left = 700_000; left >= 0; left -= 1_000) announcer.countdown("Opens at 8", left);
  assert.deepEqual(announced, ["Opens at 8. 10 min", "Opens at 8. 1 min", "Opens at 8. 10 s"]);
  announcer.countdown("Opens at 9", 8_000);
  announcer.countdown("Opens at 9", 7_000);
  assert.equal(announced.length, 3, "a page that comes late hears no milestone that is over");
});

test("a timer that a hidden tab slows down announces the last milestone only", () => {
  const announced: string[] = [];
  const announcer = new Announcer((text) => announced.push(text), WORDS);
  for (const left of [62_000, 2_000, -58_000]) announcer.countdown("Opens at 8", left);
  assert.deepEqual(announced, ["Opens at 8. 10 s"]);
});

test("no announcement has two full stops", () => {
  const announced: string[] = [];
  const announcer = new Announcer((text) => announced.push(text), WORDS);
  announcer.show({ ...at(3, "Finding your place…"), text: "Keep this page open." }, "Opens at 8 p.m.");
  announcer.show({ ...at(3, "お待ちください。"), text: "順番です。" });
  assert.deepEqual(announced, [
    "Finding your place. Keep this page open. Opens at 8 p.m. StoredTicket: 3. Soon",
    "お待ちください. 順番です. StoredTicket: 3. Soon",
  ]);
});
