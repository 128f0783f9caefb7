import assert from "node:assert/strict";
import { test } from "node:test";
import type { LanePolicy } from "../src/api.js";
import { errorsOf, fieldsOf, type LaneFields, lanesOf, peopleIn, rowIn, standardShare } from "../src/lanes.js";

const LANES: LanePolicy[] = [
  { name: "members", weight: 30, first: false },
  { name: "vip", weight: 0, first: true },
];
const row = (id: number, fields: Partial<LaneFields>): LaneFields => ({ id, before: null, name: `lane-${id}`, weight: "1", first: false, ...fields });
const errors = (...rows: Partial<LaneFields>[]) => Object.fromEntries(errorsOf(rows.map((fields, id) => row(id, fields))));

test("lanes become fields and lanes again", () => {
  const rows = fieldsOf(LANES);
  assert.deepEqual(rows.map(({ before, name, weight }) => [before, name, weight]), [["members", "members", "30"], ["vip", "vip", ""]]);
  assert.deepEqual(lanesOf(rows), LANES);
  assert.deepEqual(lanesOf([row(0, { name: "press", weight: "20", first: true })]), [{ name: "press", weight: 0, first: true }], "a lane that is served first has no share");
});

test("the standard lane has what the shares leave, and lanes that are served first take none", () => {
  assert.equal(standardShare([]), 100);
  assert.equal(standardShare(fieldsOf(LANES)), 70);
  assert.equal(standardShare([row(0, { weight: "30" }), row(1, { weight: "20" }), row(2, { weight: "40", first: true })]), 50);
  assert.equal(standardShare([row(0, { weight: "" }), row(1, { weight: "-5" }), row(2, { weight: "1.5" })]), 100, "while a share is being typed");
  assert.equal(standardShare([row(0, { weight: "60" }), row(1, { weight: "60" })]), -20);
});

test("names are checked as the server checks them", () => {
  const invalid = (name: string) => Boolean(errors({ name })[0]?.name);
  for (const name of ["a", "A.b_c~d-9", "x".repeat(32)]) assert.equal(invalid(name), false, name);
  for (const name of ["", "a b", "회원", "x".repeat(33), "standard", "a/b"]) assert.equal(invalid(name), true, name);
  assert.deepEqual(Object.keys(errors({ name: "a" }, { name: "b" }, { name: "a" })), ["2"], "the second lane of a name is the error");
});

test("shares are whole numbers that leave something for the standard lane", () => {
  for (const weight of ["", "0", "100", "1.5", "-1", "many"]) assert.ok(errors({ weight })[0]?.weight, weight);
  for (const weight of ["1", "99"]) assert.deepEqual(errors({ weight }), {}, weight);
  assert.deepEqual(errors({ weight: "", first: true }), {}, "a lane that is served first needs none");
  assert.deepEqual(errors({ weight: "60" }, { weight: "39" }), {});
  const full = errors({ weight: "60" }, { weight: "40" }, { weight: "", first: true });
  assert.deepEqual(Object.keys(full), ["1"], "the sum is shown at the last share");
  assert.match(full[1]?.weight ?? "", /100%/);
});

test("an error response is shown at the lane that it names, before or after the change", () => {
  const rows = [row(0, { before: "press", name: "media" }), row(1, { before: "vip", name: "vip" })];
  assert.equal(rowIn('lane "press" has tickets and cannot be renamed', rows), 0);
  assert.equal(rowIn('two lanes are named "media"', rows), 0);
  assert.equal(rowIn('lane "vip" has weight 0', rows), 1);
  assert.equal(rowIn("the store does not answer", rows), null);
  assert.equal(rowIn('the name "" is not allowed', [row(5, { name: "" })]), null);
});

test("the people of a lane are those who wait and those who may return", () => {
  assert.equal(peopleIn({ waiting: 3, missed: 2 }), 5);
});
