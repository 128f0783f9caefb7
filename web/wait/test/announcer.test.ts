import assert from "node:assert/strict";
import { test } from "node:test";
import type { Screen } from "../src/screen.js";
import { Announcer } from "../src/announcer.js";

const at = (position: number, headline = "In line"): Screen => ({
  kind: "waiting",
  headline,
  text: "",
  place: { position, ahead: 0, behind: 0, eta: "Soon" },
});

test("state changes are announced immediately, positions only after much progress", () => {
  const [announced, time] = [[] as string[], { now: 0 }];
  const announcer = new Announcer((text) => announced.push(text), "StoredTicket", () => time.now);
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
