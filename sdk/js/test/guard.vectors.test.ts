// Runs the vectors of sdk/vectors, which the guards for other languages run, too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { toResponse, findPass, Guard, Refusal, type RefusalCode } from "../src/guard.js";
import { startStub } from "./stub-daegi.js";

interface Step {
  now: number;
  item: string;
  keys: string;
  verdict: unknown;
  pass: string;
  expect: object;
  keyFetches: number;
  onlineChecks: number;
}

interface Vectors {
  keySets: Record<string, object>;
  scenarios: { name: string; config: object; steps: Step[] }[];
  passSources: { target: string; headers: Record<string, string>; item: string; pass: string }[];
  requests: { name: string; now: number; item: string; keys: string; target: string; headers: Record<string, string>; expect: object }[];
  responses: { code: RefusalCode; accept: string; waitingPage: string; status: number; headers: object; body: unknown }[];
}

const file = new URL("../../../vectors/guard.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;

async function outcome(guard: Guard, { item, pass }: Step): Promise<object> {
  try {
    return { entry: await guard.check(item, pass) };
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return { refused: error.code };
  }
}

for (const { name, config, steps } of vectors.scenarios) {
  test(name, async (context) => {
    const stub = await startStub(context);
    let now = 0;
    const guard = new Guard({ publicUrl: stub.url, internalUrl: stub.url, ...config, now: () => now, onError: () => {} });
    for (const step of steps) {
      now = step.now * 1000;
      stub.keys = vectors.keySets[step.keys] ?? null;
      stub.verdict = typeof step.verdict === "object" ? step.verdict : null;
      assert.deepEqual(await outcome(guard, step), step.expect);
      assert.deepEqual([stub.keyFetches, stub.onlineChecks], [step.keyFetches, step.onlineChecks]);
    }
  });
}

test("a pass is found in each of its sources", () => {
  assert.ok(vectors.passSources.length > 0);
  for (const { target, headers, item, pass } of vectors.passSources) {
    assert.equal(findPass({ url: target, headers }, item), pass, JSON.stringify({ target, headers }));
  }
});

for (const { name, now, item, keys, target, headers, expect } of vectors.requests) {
  test(`cookie and URL: ${name}`, async (context) => {
    const stub = await startStub(context);
    stub.keys = vectors.keySets[keys] ?? null;
    const guard = new Guard({ publicUrl: stub.url, now: () => now * 1000, onError: () => {} });
    const actual = await guard.authorize(item, { url: target, headers }).then(
      ({ entry, keep }) => ({ userId: entry.userId, expiresAt: entry.expiresAt, keeps: keep }),
      (error: unknown) => ({ refused: (error as Refusal).code }),
    );
    assert.deepEqual(actual, expect);
  });
}

test("browsers are redirected to the waiting page, other clients get a problem", () => {
  assert.ok(vectors.responses.length > 0);
  for (const { code, accept, waitingPage, ...expected } of vectors.responses) {
    const { body, ...response } = toResponse(new Refusal(code), accept, waitingPage);
    assert.deepEqual({ ...response, body: body === "" ? null : JSON.parse(body) }, expected);
  }
});
