import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff, sleep } from "../src/sleep.js";

test("backoff grows, is bounded and has jitter", () => {
  const least = [0, 1, 2, 30].map((failures) => backoff(failures, () => 0));
  const most = [0, 1, 2, 30].map((failures) => backoff(failures, () => 1));
  assert.deepEqual(least, [250, 500, 1000, 5000]);
  assert.deepEqual(most, [500, 1000, 2000, 10_000]);
});

test("sleep ends when the signal aborts", async () => {
  await sleep(3_600_000, AbortSignal.abort());
  const stopping = new AbortController();
  const waiting = sleep(3_600_000, stopping.signal);
  stopping.abort();
  await waiting;
});
