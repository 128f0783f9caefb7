// The stored history of a line, and who visits it: the same from every replica, and after a restart.

import { useMemo, useState } from "preact/hooks";
import { linePath } from "../api.js";
import { Chart, type Series } from "../chart.js";
import { count, percent, rate } from "../format.js";
import { saveCsv } from "../download.js";
import { usePoll } from "../poll.js";
import { t } from "../i18n.js";
import {
  DIMENSIONS,
  type Dimension,
  drawnFlow,
  drawnLevels,
  type LineMinutes,
  type Percentiles,
  periodQuery,
  type Share,
  shownShares,
  valueName,
  type Visitors,
} from "../visitors.js";
import type { PageProps } from "./page.js";

/** Periods in hours. */
const PERIODS = [1, 24, 168, 720];
/** A step is a minute at least. */
const POLL_MS = 60_000;
const EMPTY: LineMinutes = { stepMinutes: 1, at: [], waiting: [], entered: [], joined: [], admitted: [], completed: [] };

const LEVELS: Series[] = [
  { label: t("waiting"), colour: "--one", fill: true },
  { label: t("inside"), colour: "--two" },
];
const FLOW: Series[] = [
  { label: t("joined"), colour: "--two" },
  { label: t("admitted"), colour: "--one" },
  { label: t("completed"), colour: "--three" },
];

const whole = (value: number | null) => (value === null ? "–" : count(Math.round(value)));
const periodName = (hours: number) => (hours <= 24 ? t("historyHours", { n: hours }) : t("historyDays", { n: hours / 24 }));

export function History({ watch, id, at }: PageProps & { id: string; at: string }) {
  const [hours, setHours] = useState(1);
  const [failed, setFailed] = useState(false);
  const query = periodQuery(hours, Date.parse(at));
  const minutes = usePoll<LineMinutes>(watch, linePath(id, `minutes?${query}`), POLL_MS);
  const visitors = usePoll<Visitors>(watch, linePath(id, `visitors?${query}`), POLL_MS);
  // A replica of an older release has neither call.
  if (minutes.missing) return null;
  const save = (call: "minutes" | "visitors") =>
    watch.api.text(linePath(id, `${call}?${query}&format=csv`)).then(
      (csv) => (setFailed(false), saveCsv(csv, `${id}-${call}.csv`)),
      () => setFailed(true),
    );
  return (
    <section aria-labelledby="history">
      <div class="head">
        <h2 id="history">{t("history")}</h2>
        <div class="spans" role="group" aria-labelledby="history">
          {PERIODS.map((n) => (
            <button key={n} type="button" aria-pressed={hours === n} onClick={() => setHours(n)}>
              {periodName(n)}
            </button>
          ))}
        </div>
        <button type="button" onClick={() => void save("minutes")}>
          {t("historyCsv")}
        </button>
        <button type="button" onClick={() => void save("visitors")}>
          {t("visitorsCsv")}
        </button>
      </div>
      {failed && (
        <p role="alert" class="grave">
          {t("downloadFailed")}
        </p>
      )}
      <HistoryCharts minutes={minutes.data ?? EMPTY} span={hours * 3600} />
      {visitors.data && <VisitorsCard visitors={visitors.data} />}
    </section>
  );
}

function HistoryCharts({ minutes, span }: { minutes: LineMinutes; span: number }) {
  const [levels, flow] = useMemo(() => [drawnLevels(minutes), drawnFlow(minutes)], [minutes]);
  return (
    <div class="charts">
      <Chart title={t("historyLevels")} series={LEVELS} data={levels} span={span} show={whole} empty={t("noHistory")} />
      <Chart title={t("historyFlow")} series={FLOW} data={flow} span={span} show={rate} empty={t("noHistory")} />
    </div>
  );
}

function VisitorsCard({ visitors }: { visitors: Visitors }) {
  const { visits, pageViews, reconnects, leaves, pageLoadMs, timeToLeaveSeconds } = visitors;
  const shown = DIMENSIONS.filter((dimension) => visitors[dimension].length > 0);
  return (
    <section class="card visitors" aria-labelledby="visitors">
      <h2 id="visitors">{t("visitors")}</h2>
      <dl class="facts">
        <Fact name={t("visits")} value={count(visits)} />
        <Fact name={t("pageViews")} value={count(pageViews)} />
        <Fact name={t("reconnects")} value={count(reconnects)} />
        <Fact name={t("left")} value={count(leaves)} />
        <Fact name={t("pageLoad")} value={percentilesOf(pageLoadMs, "ms")} />
        <Fact name={t("timeToLeave")} value={percentilesOf(timeToLeaveSeconds, "s")} />
      </dl>
      {visits === 0 ? <p class="soft">{t("visitorsNone")}</p> : null}
      <div class="shares">
        {shown.map((dimension) => (
          <Shares key={dimension} dimension={dimension} shares={visitors[dimension]} />
        ))}
      </div>
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Shares({ dimension, shares }: { dimension: Dimension; shares: Share[] }) {
  return (
    <table id={`visits-${dimension}`}>
      <caption>{t(`visits_${dimension}`)}</caption>
      <tbody>
        {shownShares(shares).map(({ name, count: visits, share }) => (
          <tr key={name}>
            <th scope="row">{valueName(dimension, name)}</th>
            <td class="bar">
              <progress max={1} value={share} aria-hidden="true" />
            </td>
            <td class="number">{percent(share)}</td>
            <td class="number">{count(visits)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Formats median, 75 % and 95 %. */
function percentilesOf({ p50, p75, p95 }: Percentiles, unit: string): string {
  if (p50 === null || p75 === null || p95 === null) return "–";
  return `${count(p50)} · ${count(p75)} · ${count(p95)} ${unit}`;
}
