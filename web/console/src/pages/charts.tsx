// A line over time. The server provides the history before the page was opened; then every poll adds a point.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Figures, type LineHistory, type LineDetail, linePath } from "../api.js";
import { Chart, type Series } from "../chart.js";
import { count, rate, percent } from "../format.js";
import { append, conversions, type Drawn, levels, MINUTE, fromHistory, type Point, fromLine, speed, times } from "../series.js";
import { type Key, t } from "../i18n.js";
import type { PageProps } from "./page.js";

const SPANS = [5, 15, 30];
/** After a gap of this length, the history is loaded from the server again. */
const GAP = 15_000;

interface ChartSpec {
  title: Key;
  series: Series[];
  draw: (points: Point[]) => (number | null)[][];
  show: (value: number | null) => string;
}

const whole = (value: number | null) => (value === null ? "–" : count(Math.round(value)));
const series = (key: Key, colour: Series["colour"], fill = false): Series => ({ label: t(key), colour, fill });

const lost = (points: Point[], figure: keyof Figures) => speed(points, figure, 60, MINUTE);

const CHARTS: ChartSpec[] = [
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
  { title: "chartConversion", series: [series("conversion", "--one", true)], draw: (points) => [conversions(points)], show: percent },
  {
    title: "chartFront",
    series: [series("tail", "--two"), series("frontier", "--one")],
    draw: (points) => [levels(points, "tail"), levels(points, "frontier")],
    show: whole,
  },
];

export function Charts({ watch, line }: PageProps & { line: LineDetail }) {
  const [minutes, setMinutes] = useState(5);
  const points = usePoints(watch, line);
  return (
    <section aria-labelledby="charts">
      <div class="head">
        <h2 id="charts">{t("range")}</h2>
        <div class="spans" role="group" aria-labelledby="charts">
          {SPANS.map((n) => (
            <button key={n} type="button" aria-pressed={minutes === n} onClick={() => setMinutes(n)}>
              {t("rangeMinutes", { n })}
            </button>
          ))}
        </div>
      </div>
      <div class="charts">
        {CHARTS.map((spec) => (
          <ChartPanel key={spec.title} spec={spec} points={points} span={minutes * 60} />
        ))}
      </div>
    </section>
  );
}

function ChartPanel({ spec, points, span }: { spec: ChartSpec; points: Point[]; span: number }) {
  const data = useMemo((): Drawn => [times(points), ...spec.draw(points)], [points]);
  return <Chart title={t(spec.title)} series={spec.series} data={data} span={span} show={spec.show} empty={t("noHistory")} />;
}

function usePoints({ api }: PageProps["watch"], line: LineDetail): Point[] {
  const id = line.item.itemId;
  const [points, setPoints] = useState<Point[]>([]);
  const last = useRef(0);
  useEffect(() => {
    const point = fromLine(line);
    const missed = point.at - last.current > GAP;
    last.current = point.at;
    if (!missed) return setPoints((before) => append(before, point));
    const history = api.get<LineHistory>(linePath(id, "history"));
    // If the history cannot be loaded, draw the current point only.
    void history.then(fromHistory, (): Point[] => []).then((before) =>
      setPoints((after) => {
        const since = after.filter(({ at }) => at >= point.at);
        const latest = before.filter(({ at }) => at < point.at);
        return [point, ...since].reduce(append, latest);
      }),
    );
  }, [line.at]);
  return points;
}
