// A line over time: what the server remembers, and from then on what the page sees.

import { FIGURES, type Figures, type LineHistory, type LineNow } from "./api.js";

/** A line at one moment, in Unix milliseconds. */
export type Point = Figures & { at: number };

/** Lists of x (Unix seconds) and y values, as the chart takes them; null is a gap. */
export type Drawn = [number[], ...(number | null)[][]];

const SECOND = 1000;
/** Speeds are means over so long: ticks must not look like waves. */
const SMOOTH = 5 * SECOND;
/** What is rare is counted over so long. */
export const MINUTE = 60 * SECOND;
/** Conversion is that of so long. */
const CONVERSION = 300 * SECOND;
/** So much is kept in the page. */
const KEPT = 3600;

export function past(history: LineHistory): Point[] {
  return history.at.map((at, index) => {
    const figures = FIGURES.map((figure) => [figure, history[figure][index] ?? 0]);
    return { at, ...(Object.fromEntries(figures) as Figures) };
  });
}

export function present({ at, people }: LineNow): Point {
  const figures = FIGURES.map((figure) => [figure, people[figure]]);
  return { at: Date.parse(at), ...(Object.fromEntries(figures) as Figures) };
}

/** Adds a point, unless it is no news. Clocks of two replicas may differ: time only goes on. */
export function added(points: readonly Point[], point: Point): Point[] {
  const last = points.at(-1);
  if (last && point.at <= last.at) return [...points];
  return [...points, point].slice(-KEPT);
}

/** For each point the latest one that is at least so much older; a gap in between counts as none. */
function* pairs(points: readonly Point[], span: number): Generator<[Point, Point | null]> {
  let from = 0;
  for (const point of points) {
    while ((points[from + 1]?.at ?? Infinity) <= point.at - span) from++;
    const before = points[from] as Point;
    yield [point, before.at <= point.at - SMOOTH ? before : null];
  }
}

/** How fast a figure that only grows does so, per second times `per`, as a mean over `span`. */
export function speed(points: readonly Point[], figure: keyof Figures, per = 1, span = SMOOTH): (number | null)[] {
  return Array.from(pairs(points, span), ([now, before]) => {
    if (!before) return null;
    const grown = now[figure] - before[figure];
    // A line that was created anew counts from 0 again.
    return grown < 0 ? null : (grown * per * SECOND) / (now.at - before.at);
  });
}

/** Of those who were let in and are not inside any more, the part that completed. */
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
