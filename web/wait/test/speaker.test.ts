import assert from "node:assert/strict";
import { test } from "node:test";
import type { Scene } from "../src/scene.js";
import { Speaker } from "../src/speaker.js";

const at = (position: number, headline = "In line"): Scene => ({
  kind: "waiting",
  headline,
  text: "",
  place: { position, ahead: 0, behind: 0, eta: "Soon" },
});

test("changes are said at once, places only when much has changed", () => {
  const [said, time] = [[] as string[], { now: 0 }];
  const speaker = new Speaker((text) => said.push(text), "Place", () => time.now);
  const show = (scene: Scene, after: number) => {
    time.now += after;
    speaker.show(scene);
  };
  show(at(1000), 0);
  for (let position = 999; position > 500; position--) show(at(position), 1000);
  assert.equal(said.length, 1, "half the way is not behind us yet");
  show(at(500), 1000);
  show(at(100), 1000);
  assert.deepEqual(said.slice(1), ["Place: 500. Soon"], "not twice within half a minute");
  show(at(100), 30_000);
  show(at(100, "Paused"), 1);
  assert.deepEqual(said.slice(2), ["Place: 100. Soon", "Paused. Place: 100. Soon"]);
});
