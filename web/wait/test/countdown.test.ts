import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { readFileSync } from "node:fs";
import { Countdown } from "../src/countdown.js";
import type { Messages } from "../src/i18n.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;
const AT = "2100-01-01T20:00:00Z";

test("a countdown follows the server's clock, and not the clock of the machine", (context) => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 0 });
  context.after(() => mock.timers.reset());
  const [shown, time] = [[] as string[], { now: 5_000 }];
  const view = { countdown: (_: string, left: string) => void shown.push(left) };
  const countdown = new Countdown(view, { countdown() {} }, messages, "en-GB", () => time.now);
  const pass = (ms: number) => {
    time.now += ms;
    mock.timers.tick(ms);
  };
  countdown.show({ kind: "opening", at: AT, inMs: 2_400 });
  mock.timers.setTime(9_999_999);
  assert.deepEqual(shown.splice(0), ["0:03"]);
  pass(400);
  assert.deepEqual(shown.splice(0), ["0:02"]);
  countdown.show({ kind: "opening", at: AT, inMs: 60_000 });
  assert.deepEqual(shown.splice(0), ["1:00"], "a response synchronizes it");
  countdown.show({ kind: "opening", at: AT, inMs: 1_000 });
  pass(1_000);
  assert.deepEqual(shown.splice(0), ["0:01", "Any moment now"]);
  pass(10_000);
  assert.deepEqual(shown, [], "it is over");
  countdown.show({ kind: "opening", at: AT, inMs: 5_000 });
  countdown.show(undefined);
  shown.splice(0);
  pass(10_000);
  assert.deepEqual(shown, []);
});
