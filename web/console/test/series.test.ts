import assert from "node:assert/strict";
import { test } from "node:test";
import { FIGURES, type Figures, type LineHistory } from "../src/api.js";
import { append, conversion, conversions, fromHistory, type Point, speed } from "../src/series.js";

const none = Object.fromEntries(FIGURES.map((figure) => [figure, 0])) as Figures;
const point = (at: number, figures: Partial<Figures> = {}): Point => ({ ...none, ...figures, at });

test("a history becomes points, oldest first", () => {
  const lists = Object.fromEntries(FIGURES.map((figure) => [figure, [1, 2]]));
  const points = fromHistory({ ...lists, at: [5_000, 10_000], replica: "a" } as unknown as LineHistory);
  assert.deepEqual(points.map(({ at, waiting, tail }) => [at, waiting, tail]), [[5_000, 1, 1], [10_000, 2, 2]]);
});

test("points in the past are not appended", () => {
  const points = append(append([], point(2_000)), point(1_000));
  assert.deepEqual(points.map(({ at }) => at), [2_000]);
  assert.equal(append(points, point(3_000)).length, 2);
});

test("a rate is a mean over 5 s, also with dense points", () => {
  const points = [0, 5, 6, 7, 8, 9, 10, 11].map((second) => point(second * 1000, { admitted: second * 3 }));
  assert.deepEqual(speed(points, "admitted"), [null, 3, 3, 3, 3, 3, 3, 3]);
  assert.deepEqual(speed(points, "admitted", 60).at(-1), 180);
});

test("a line that restarts has no negative rate", () => {
  const points = [point(0, { joined: 50 }), point(5_000, { joined: 2 })];
  assert.deepEqual(speed(points, "joined"), [null, null]);
});

test("conversion counts ended entries", () => {
  assert.equal(conversion({ ...none, admitted: 10, entered: 10 }), null);
  assert.equal(conversion({ ...none, admitted: 10, entered: 2, completed: 6 }), 0.75);
  const points = [0, 200, 400].map((second, nth) => point(second * 1000, { admitted: nth * 10, completed: nth * nth * 2 }));
  assert.deepEqual(conversions(points), [null, 0.2, 0.4]);
});
