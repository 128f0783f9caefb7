// Runs the vectors of sdk/vectors/draw.json, which the implementations in Rust and Go run, too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkDraw, permute, rootOf, type DrawCheck, type DrawRecord } from "../src/draw.js";

interface Vectors {
  permutations: { seed: string; size: number; indexAndRank: [number, number][] }[];
  trees: { leaves: string[]; root: string; paths: { index: number; path: string[] }[] }[];
  records: { name: string; token: string | null; checks: DrawCheck[]; record: DrawRecord }[];
}

const file = new URL("../../../vectors/draw.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;

test("permutations have the ranks of the vectors", () => {
  for (const { seed, size, indexAndRank } of vectors.permutations) {
    for (const [index, rank] of indexAndRank) {
      assert.equal(permute(Buffer.from(seed, "hex"), size, index), rank, `index ${index} of ${size}`);
    }
  }
});

test("paths lead to the roots of the vectors", async () => {
  for (const { leaves, root, paths } of vectors.trees) {
    for (const { index, path } of paths) {
      const leaf = leaves[index] ?? "";
      assert.equal(await rootOf(leaf, index, leaves.length, path), root);
      assert.equal(await rootOf(leaf, leaves.length, leaves.length, path), null);
      assert.equal(await rootOf(leaf, index, leaves.length, [...path, root]), null);
    }
  }
});

for (const { name, record, token, checks } of vectors.records) {
  test(`record: ${name}`, async () => {
    assert.deepEqual(await checkDraw(record, token), { ok: checks.every((check) => check.ok), checks });
  });
}

test("malformed records fail and do not throw", async () => {
  const genuine = vectors.records.find(({ name }) => name === "drawn, with a token")?.record;
  assert.ok(genuine);
  for (const change of [{ seed: "ab" }, { reveal: 1 }, { cohortSize: -1 }, { state: "OTHER" }, { commitment: null }, { cohortRoot: "Z".repeat(64) }]) {
    const { ok, checks } = await checkDraw({ ...genuine, ...change } as unknown as DrawRecord);
    assert.equal(ok, false);
    assert.deepEqual(checks.at(-1), { name: "fields", ok: false });
  }
});
