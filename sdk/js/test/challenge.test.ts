// Runs the vectors of sdk/vectors/challenge.json, which the implementation in Rust generates, and joins through challenges.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { type Challenge, ProblemError, type RoomOptions, solveChallenge } from "../src/index.js";
import { json, problem, room, ticket } from "./server.js";

interface Vector {
  challenge: string;
  difficulty: number;
  solution: string;
}

const file = new URL("../../../vectors/challenge.json", import.meta.url);
const { solutions } = JSON.parse(readFileSync(file, "utf8")) as { solutions: Vector[] };
const CHALLENGE = { kind: "pow", challenge: solutions[2]?.challenge ?? "", difficulty: solutions[2]?.difficulty ?? 0 };

for (const { challenge, difficulty, solution } of solutions) {
  test(`a challenge of ${difficulty} bits has the solution of the vectors: ${solution}`, async () => {
    assert.equal(await solveChallenge({ kind: "pow", challenge, difficulty }), solution);
  });
}

/** A line that challenges every join whose solution it does not accept; returns the bodies of the joins, too. */
async function challenging(context: TestContext, accepts: (solution: string, joins: number) => boolean, options: Partial<RoomOptions> = {}) {
  const joins: string[] = [];
  const line = await room(context, async (request, response) => {
    const body = await text(request);
    joins.push(body + (request.headers.authorization ?? ""));
    const { challenge = "" } = JSON.parse(body || "{}") as { challenge?: string };
    if (accepts(challenge, joins.length)) json(response, ticket(), 201);
    else problem(response, 403, "CHALLENGE_REQUIRED", undefined, { challenge: CHALLENGE });
  }, options);
  return { line, joins };
}

test("a join solves the challenge and keeps its invitation code", async (context) => {
  const { line, joins } = await challenging(context, (solution) => solution === solutions[2]?.solution);
  assert.equal((await line.join("lee", { code: "AB" })).status, "WAITING");
  assert.deepEqual(joins, ['{"code":"AB"}', JSON.stringify({ code: "AB", challenge: solutions[2]?.solution })]);
});

test("a challenge that expires meanwhile is replaced, and an endless one is a problem", async (context) => {
  const late = await challenging(context, (_, joins) => joins === 3);
  await late.line.join("lee");
  assert.equal(late.joins.length, 3);
  const endless = await challenging(context, () => false);
  await assert.rejects(endless.line.join("lee"), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual([error.code, error.challenge], ["CHALLENGE_REQUIRED", CHALLENGE]);
    return true;
  });
  assert.equal(endless.joins.length, 4);
});

test("the solver of a page is used, and a token is sent in its header", async (context) => {
  const solved: Challenge[] = [];
  const solve = async (challenge: Challenge) => (solved.push(challenge), "mine");
  const { line, joins } = await challenging(context, (solution) => solution === "mine", { solve });
  await line.join("lee", { token: "earlier" });
  assert.deepEqual([solved, joins], [[CHALLENGE], ["Bearer earlier", '{"challenge":"mine"}Bearer earlier']]);
});

const WIDGET = { kind: "widget", challenge: "ab", difficulty: 0, widget: { provider: "turnstile", siteKey: "site", script: "https://a.example/api.js" } };

test("the response of a widget comes from the caller, who gets the challenge of each attempt", async (context) => {
  const joins: string[] = [];
  const shown: Challenge[] = [];
  const answer = async (challenge: Challenge) => `response-${shown.push(challenge)}`;
  const line = await room(context, async (request, response) => {
    joins.push(await text(request));
    if (joins.at(-1)?.includes("response-2")) json(response, ticket(), 201);
    else problem(response, 403, "CHALLENGE_REQUIRED", undefined, { challenge: WIDGET });
  }, { onChallenge: answer });
  await line.join("lee");
  assert.deepEqual(shown, [WIDGET, WIDGET]);
  assert.deepEqual(joins, ["", '{"challenge":"ab:response-1"}', '{"challenge":"ab:response-2"}']);
});

test("a widget without a hook is a problem, and a proof of work needs none", async (context) => {
  const widget = await room(context, (_, response) => problem(response, 403, "CHALLENGE_REQUIRED", undefined, { challenge: WIDGET }));
  await assert.rejects(widget.join("lee"), (error) => error instanceof ProblemError && error.challenge?.widget?.siteKey === "site");
  const onChallenge = async () => assert.fail("a proof of work is not for the caller");
  const { line, joins } = await challenging(context, (solution) => solution === solutions[2]?.solution, { onChallenge });
  await line.join("lee");
  assert.equal(joins.length, 2);
});

test("a challenge can be cancelled, and one of an unknown kind is an error", async () => {
  await assert.rejects(solveChallenge({ ...CHALLENGE, difficulty: 33 }, AbortSignal.abort()), { name: "AbortError" });
  await assert.rejects(solveChallenge({ ...CHALLENGE, kind: "widget" }), /widget/);
});
