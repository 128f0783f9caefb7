// A line over time: the server's history, extended by each poll.

import { FIGURES, type Figures, type LineHistory, type LineDetail } from "./api.js";

/** A line at one time, in Unix milliseconds. */
export type Point = Figures & { at: number };

/** Lists of x (Unix seconds) and y values for the chart; null is a gap. */
export type Drawn = [number[], ...(number | null)[][]];

const SECOND = 1000;
/** Window of the mean for rates, so that ticks do not show as waves. */
const SMOOTH = 5 * SECOND;
/** Window of rare figures. */
export const MINUTE = 60 * SECOND;
/** Window of the conversion. */
const CONVERSION = 300 * SECOND;
/** Maximum points in memory. */
const MAX_POINTS = 3600;

export function fromHistory(history: LineHistory): Point[] {
  return history.at.map((at, index) => {
    const figures = FIGURES.map((figure) => [figure, history[figure][index] ?? 0]);
    return { at, ...(Object.fromEntries(figures) as Figures) };
  });
}

export function fromLine({ at, people }: LineDetail): Point {
  const figures = FIGURES.map((figure) => [figure, people[figure]]);
  return { at: Date.parse(at), ...(Object.fromEntries(figures) as Figures) };
}

/** Appends a point unless it is not newer, because clocks of two replicas may differ. */
export function append(points: readonly Point[], point: Point): Point[] {
  const last = points.at(-1);
  if (last && point.at <= last.at) return [...points];
  return [...points, point].slice(-MAX_POINTS);
}

/** Pairs each point with the latest one that is at least `span` older; null across a gap. */
function* pairs(points: readonly Point[], span: number): Generator<[Point, Point | null]> {
  let from = 0;
  for (const point of points) {
    while ((points[from + 1]?.at ?? Infinity) <= point.at - span) from++;
    const before = points[from] as Point;
    yield [point, before.at <= point.at - SMOOTH ? before : null];
  }
}

/** Returns the rate of a counter, per second times `per`, as a mean over `span`. */
export function speed(points: readonly Point[], figure: keyof Figures, per = 1, span = SMOOTH): (number | null)[] {
  return Array.from(pairs(points, span), ([now, before]) => {
    if (!before) return null;
    const grown = now[figure] - before[figure];
    // A recreated line counts from 0 again.
    return grown < 0 ? null : (grown * per * SECOND) / (now.at - before.at);
  });
}

/** Returns the completed share of all admitted tickets whose entry has ended. */
export function conversion({ completed, admitted, entered }: Figures, before?: Figures | null): number | null {
  const through = admitted - entered - (before ? before.admitted - before.entered : 0);
  const done = completed - (before?.completed ?? 0);
  return through > 0 ? Math.min(1, Math.max(0, done / through)) : null;
}

export function conversions(points: readonly Point[]): (number | null)[] {
  return Array.from(pairs(points, CONVERSION), ([now, before]) => (before ? conversion(now, before) : null));
}

export const times = (points: readonly Point[]): number[] => points.map(({ at }) => at / SECOND);

export const levels = (points: readonly Point[], figure: keyof Figures): number[] => points.map((point) => point[figure]);
