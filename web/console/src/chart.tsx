// A chart of live series, drawn by uPlot. Follows the size of its container and the colours of the page.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Drawn } from "./series.js";
import { language } from "./i18n.js";

export interface Series {
  label: string;
  /** A colour of the style sheet. */
  colour: "--one" | "--two" | "--three";
  fill?: boolean;
}

interface Props {
  title: string;
  series: Series[];
  data: Drawn;
  /** Seconds of the time axis. */
  span: number;
  show: (value: number | null) => string;
  empty: string;
}

const HEIGHT = 150;
const HOUR = 3600;
const seconds = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minutes = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const days = new Intl.DateTimeFormat(language, { month: "short", day: "numeric" });
/** Distances between labels of the time axis, in seconds. */
const INTERVALS = [10, 30, 60, 120, 300, 600, 1800, HOUR, 2 * HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 168 * HOUR];
const dark = globalThis.matchMedia?.("(prefers-color-scheme: dark)");

export function Chart({ title, series, data, span, show, empty }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const range = useRef(span);
  range.current = span;

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element, series, range, show), latest.current, element);
    };
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    draw();
    resized.observe(element);
    dark?.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      dark?.removeEventListener("change", draw);
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [data, span]);

  const now = series.map(({ label }, nth) => `${label} ${show(data[nth + 1]?.at(-1) ?? null)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul>
          {series.map(({ label, colour }, nth) => (
            <li key={label}>
              <i class={`dot ${colour.slice(2)}`} /> {series.length > 1 && `${label} `}
              <b>{show(data[nth + 1]?.at(-1) ?? null)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={`${title}: ${now}`} />
      {data[0].length < 2 && <p class="empty">{empty}</p>}
    </figure>
  );
}

/** Returns the format of times on an axis of this length. */
function timeLabel(span: number): Intl.DateTimeFormat {
  if (span > 48 * HOUR) return days;
  return span > HOUR / 2 ? minutes : seconds;
}

function options(element: HTMLElement, series: Series[], span: { current: number }, show: Props["show"]): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const [soft, hair] = [colour("--soft"), colour("--hair")];
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: soft, font, grid: { stroke: hair, width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: {
      x: { time: true, range: (_, __, last) => [last - span.current, last] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    },
    axes: [
      { ...axis, space: 62, size: 26, incrs: INTERVALS, values: (_, splits) => splits.map((at) => timeLabel(span.current).format(at * 1000)) },
      { ...axis, space: 34, size: 52, values: (_, splits) => splits.map((value) => (show(value) === "–" ? "" : show(value))) },
    ],
    series: [
      {},
      ...series.map(({ label, colour: name, fill }) => ({
        label,
        stroke: colour(name),
        width: 1.75,
        points: { show: false },
        ...(fill && { fill: `${colour(name)}22` }),
      })),
    ],
  };
}
