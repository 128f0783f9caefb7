// What sdk/vectors says, this guard does. The same vectors are read by the guards in Rust and Java.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { answerTo, findPass, Guard, Refusal, type RefusalCode } from "../src/guard.js";
import { daegi } from "./daegi.js";

interface Step {
  now: number;
  item: string;
  keys: string;
  verdict: unknown;
  pass: string;
  expect: object;
  keysAsked: number;
  verdictsAsked: number;
}

interface Vectors {
  keySets: Record<string, object>;
  stories: { name: string; setup: object; steps: Step[] }[];
  carriers: { target: string; headers: Record<string, string>; item: string; pass: string }[];
  requests: { name: string; now: number; item: string; keys: string; target: string; headers: Record<string, string>; expect: object }[];
  answers: { code: RefusalCode; accept: string; waitingPage: string; status: number; headers: object; body: unknown }[];
}

const file = new URL("../../../vectors/guard.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;

async function told(guard: Guard, { item, pass }: Step): Promise<object> {
  try {
    return { entry: await guard.check(item, pass) };
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return { refused: error.code };
  }
}

for (const { name, setup, steps } of vectors.stories) {
  test(name, async (context) => {
    const room = await daegi(context);
    let now = 0;
    const guard = new Guard({ room: room.url, internal: room.url, ...setup, now: () => now, onTrouble: () => {} });
    for (const step of steps) {
      now = step.now * 1000;
      room.keys = vectors.keySets[step.keys] ?? null;
      room.verdict = typeof step.verdict === "object" ? step.verdict : null;
      assert.deepEqual(await told(guard, step), step.expect);
      assert.deepEqual([room.keysAsked, room.verdictsAsked], [step.keysAsked, step.verdictsAsked]);
    }
  });
}

test("a pass is found where it may be", () => {
  assert.ok(vectors.carriers.length > 0);
  for (const { target, headers, item, pass } of vectors.carriers) {
    assert.equal(findPass({ url: target, headers }, item), pass, JSON.stringify({ target, headers }));
  }
});

for (const { name, now, item, keys, target, headers, expect } of vectors.requests) {
  test(`cookie and address: ${name}`, async (context) => {
    const room = await daegi(context);
    room.keys = vectors.keySets[keys] ?? null;
    const guard = new Guard({ room: room.url, now: () => now * 1000, onTrouble: () => {} });
    const admitted = await guard.admit(item, { url: target, headers }).then(
      ({ entry, keep }) => ({ userId: entry.userId, expiresAt: entry.expiresAt, keeps: keep }),
      (error: unknown) => ({ refused: (error as Refusal).code }),
    );
    assert.deepEqual(admitted, expect);
  });
}

test("people are sent to the waiting page, programs are told", () => {
  assert.ok(vectors.answers.length > 0);
  for (const { code, accept, waitingPage, ...expected } of vectors.answers) {
    const { body, ...answer } = answerTo(new Refusal(code), accept, waitingPage);
    assert.deepEqual({ ...answer, body: body === "" ? null : JSON.parse(body) }, expected);
  }
});
