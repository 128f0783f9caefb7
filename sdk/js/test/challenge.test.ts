// Runs the vectors of sdk/vectors/challenge.json, which the implementation in Rust generates, and joins through challenges.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { type Challenge, ProblemError, type SolveChallenge, solveChallenge } from "../src/index.js";
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
async function challenging(context: TestContext, accepts: (solution: string, joins: number) => boolean, solve?: SolveChallenge) {
  const joins: string[] = [];
  const line = await room(context, async (request, response) => {
    const body = await text(request);
    joins.push(body + (request.headers.authorization ?? ""));
    const { challenge = "" } = JSON.parse(body || "{}") as { challenge?: string };
    if (accepts(challenge, joins.length)) json(response, ticket(), 201);
    else problem(response, 403, "CHALLENGE_REQUIRED", undefined, { challenge: CHALLENGE });
  }, solve && { solve });
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
  const { line, joins } = await challenging(context, (solution) => solution === "mine", solve);
  await line.join("lee", { token: "earlier" });
  assert.deepEqual([solved, joins], [[CHALLENGE], ["Bearer earlier", '{"challenge":"mine"}Bearer earlier']]);
});

test("a challenge can be cancelled, and one of an unknown kind is an error", async () => {
  await assert.rejects(solveChallenge({ ...CHALLENGE, difficulty: 33 }, AbortSignal.abort()), { name: "AbortError" });
  await assert.rejects(solveChallenge({ ...CHALLENGE, kind: "widget" }), /widget/);
});
