// A line over time. What was before the page was opened is the server's memory; from then on every
// answer is a point.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Figures, type LineHistory, type LineNow, linePath } from "../api.js";
import { Chart, type Series } from "../chart.js";
import { count, rate, share } from "../format.js";
import { added, conversions, type Drawn, levels, MINUTE, past, type Point, present, speed, times } from "../series.js";
import { type Key, say } from "../words.js";
import type { PageProps } from "./page.js";

const SPANS = [5, 15, 30];
/** So long without an answer, and the server knows better than the page what happened. */
const GAP = 15_000;

interface Plan {
  title: Key;
  series: Series[];
  draw: (points: Point[]) => (number | null)[][];
  show: (value: number | null) => string;
}

const whole = (value: number | null) => (value === null ? "–" : count(Math.round(value)));
const series = (key: Key, colour: Series["colour"], fill = false): Series => ({ label: say(key), colour, fill });

const lost = (points: Point[], figure: keyof Figures) => speed(points, figure, 60, MINUTE);

const PLANS: Plan[] = [
  { title: "chartWaiting", series: [series("waiting", "--one", true)], draw: (points) => [levels(points, "waiting")], show: whole },
  { title: "chartInside", series: [series("inside", "--one", true)], draw: (points) => [levels(points, "entered")], show: whole },
  {
    title: "chartFlow",
    series: [series("joined", "--two"), series("admitted", "--one"), series("completed", "--three")],
    draw: (points) => [speed(points, "joined"), speed(points, "admitted"), speed(points, "completed")],
    show: rate,
  },
  {
    title: "chartLost",
    series: [series("abandoned", "--three"), series("left", "--two"), series("expired", "--one")],
    draw: (points) => [lost(points, "abandoned"), lost(points, "left"), lost(points, "expired")],
    show: rate,
  },
  { title: "chartConversion", series: [series("conversion", "--one", true)], draw: (points) => [conversions(points)], show: share },
  {
    title: "chartFront",
    series: [series("tail", "--two"), series("frontier", "--one")],
    draw: (points) => [levels(points, "tail"), levels(points, "frontier")],
    show: whole,
  },
];

export function Charts({ watch, line }: PageProps & { line: LineNow }) {
  const [minutes, setMinutes] = useState(5);
  const points = usePoints(watch, line);
  return (
    <section aria-labelledby="charts">
      <div class="head">
        <h2 id="charts">{say("range")}</h2>
        <div class="spans" role="group" aria-labelledby="charts">
          {SPANS.map((n) => (
            <button key={n} type="button" aria-pressed={minutes === n} onClick={() => setMinutes(n)}>
              {say("rangeMinutes", { n })}
            </button>
          ))}
        </div>
      </div>
      <div class="charts">
        {PLANS.map((plan) => (
          <Planned key={plan.title} plan={plan} points={points} span={minutes * 60} />
        ))}
      </div>
    </section>
  );
}

function Planned({ plan, points, span }: { plan: Plan; points: Point[]; span: number }) {
  const data = useMemo((): Drawn => [times(points), ...plan.draw(points)], [points]);
  return <Chart title={say(plan.title)} series={plan.series} data={data} span={span} show={plan.show} empty={say("noHistory")} />;
}

function usePoints({ api }: PageProps["watch"], line: LineNow): Point[] {
  const id = line.item.itemId;
  const [points, setPoints] = useState<Point[]>([]);
  const last = useRef(0);
  useEffect(() => {
    const point = present(line);
    const missed = point.at - last.current > GAP;
    last.current = point.at;
    if (!missed) return setPoints((before) => added(before, point));
    const history = api.get<LineHistory>(linePath(id, "history"));
    // Without the past the present is still worth drawing.
    void history.then(past, (): Point[] => []).then((before) =>
      setPoints((after) => {
        const since = after.filter(({ at }) => at >= point.at);
        const latest = before.filter(({ at }) => at < point.at);
        return [point, ...since].reduce(added, latest);
      }),
    );
  }, [line.at]);
  return points;
}
