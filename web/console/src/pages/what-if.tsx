// "What if": simulates a sale with other settings. Changes nothing.

import { useId, useState } from "preact/hooks";
import { type Forecast, Refusal, type Sale } from "../api.js";
import { Chart, type Series } from "../chart.js";
import { Labelled } from "../components/labelled.js";
import { count, duration, percent } from "../format.js";
import { type Key, t } from "../i18n.js";
import type { Drawn } from "../series.js";
import type { PageProps } from "./page.js";

const SHAPES = ["opening", "steady", "bursts"] as const;
/** As long as the server may take, and some more. */
const TIMEOUT = 15_000;

/** What is typed. A capacity of 0 is none. */
const START = {
  visitors: 5000,
  minutes: 10,
  stock: 1000,
  rate: 10,
  capacity: 0,
  checkoutSeconds: 60,
  passTtlSeconds: 600,
  graceSeconds: 60,
  noShowPercent: 10,
  buyPercent: 90,
};
type Typed = typeof START;

/** The fields with their label and range. */
const FIELDS: [keyof Typed, Key, number, number][] = [
  ["visitors", "whatIfVisitors", 1, 50_000],
  ["minutes", "whatIfMinutes", 1, 2880],
  ["stock", "whatIfStock", 0, 4_294_967_295],
  ["rate", "whatIfRate", 1, 1_000_000],
  ["capacity", "whatIfCapacity", 0, 1_000_000_000],
  ["checkoutSeconds", "whatIfCheckout", 1, 86_400],
  ["passTtlSeconds", "passTtlSeconds", 1, 86_400],
  ["graceSeconds", "graceSeconds", 0, 1800],
  ["noShowPercent", "whatIfNoShows", 0, 100],
  ["buyPercent", "whatIfBuy", 0, 100],
];

function saleOf(typed: Typed, shape: string): Sale {
  const { visitors, minutes, stock, rate, capacity, passTtlSeconds, graceSeconds, ...behaviour } = typed;
  return {
    arrivals: { total: visitors, minutes, shape },
    stock,
    policy: { tokensPerTick: rate, maxActive: capacity || null, passTtlSeconds, graceSeconds },
    visitors: behaviour,
  };
}

type State = { kind: "idle" | "running" } | { kind: "failed"; text: string } | { kind: "done"; forecast: Forecast; at: number };

export function WhatIf({ watch }: PageProps) {
  const id = useId();
  const [typed, setTyped] = useState(START);
  const [shape, setShape] = useState<string>(SHAPES[0]);
  const [state, setState] = useState<State>({ kind: "idle" });
  const run = async () => {
    setState({ kind: "running" });
    try {
      const forecast = await watch.api.send<Forecast>("POST", "/simulate", saleOf(typed, shape), TIMEOUT);
      setState({ kind: "done", forecast, at: Date.now() });
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return watch.denied();
      setState({ kind: "failed", text: error instanceof Refusal ? error.message : t("whatIfLost") });
    }
  };
  return (
    <main>
      <section class="card" aria-labelledby={`${id}-head`}>
        <h1 id={`${id}-head`}>{t("whatIf")}</h1>
        <p>{t("whatIfText")}</p>
        <form
          class="rules"
          onSubmit={(event) => {
            event.preventDefault();
            void run();
          }}
        >
          {FIELDS.map(([name, label, min, max]) => (
            <Labelled key={name} id={`${id}-${name}`} label={label}>
              <input
                id={`${id}-${name}`}
                type="number"
                required
                min={min}
                max={max}
                value={typed[name]}
                onInput={({ currentTarget }) => setTyped((before) => ({ ...before, [name]: Number(currentTarget.value) }))}
              />
            </Labelled>
          ))}
          <Labelled id={`${id}-shape`} label="whatIfShape">
            <select id={`${id}-shape`} value={shape} onChange={({ currentTarget }) => setShape(currentTarget.value)}>
              {SHAPES.map((name) => (
                <option key={name} value={name}>
                  {t(`whatIf${name}`)}
                </option>
              ))}
            </select>
          </Labelled>
          <button type="submit" class="ready" disabled={state.kind === "running"}>
            {t(state.kind === "running" ? "whatIfRunning" : "whatIfRun")}
          </button>
        </form>
        <p role="alert" class="grave" hidden={state.kind !== "failed"}>
          {state.kind === "failed" && state.text}
        </p>
      </section>
      <p role="status" class="unseen">
        {state.kind === "done" && t("whatIfDone")}
      </p>
      {state.kind === "done" && <Result key={state.at} forecast={state.forecast} at={state.at} />}
    </main>
  );
}

const series = (key: Key, colour: Series["colour"], fill = false): Series => ({ label: t(key), colour, fill });
const whole = (value: number | null) => (value === null ? "–" : count(Math.round(value)));

function Result({ forecast, at }: { forecast: Forecast; at: number }) {
  const { perMinute, waits, estimates } = forecast;
  const minutes = perMinute.joined.map((_, minute) => Math.round(at / 1000) + (minute + 1) * 60);
  const levels: Drawn = [minutes, perMinute.waiting, perMinute.entered];
  const flow: Drawn = [minutes, perMinute.joined, perMinute.admitted, perMinute.bought];
  const span = Math.max(60, minutes.length * 60);
  const after = (seconds: number | null) => (seconds === null ? t("never") : duration(seconds));
  const rows: [Key, string][] = [
    ["whatIfSoldOut", after(forecast.soldOutSeconds)],
    ["whatIfCleared", after(forecast.clearedSeconds)],
    ["whatIfAdmitted", count(forecast.admitted)],
    ["whatIfBought", count(forecast.bought)],
    ["whatIfWithout", count(forecast.withoutTurn)],
    ["whatIfUnsold", count(forecast.unsold)],
    ["whatIfExpired", count(forecast.expired)],
    ["whatIfAbandoned", count(forecast.abandoned)],
    ["whatIfHalf", after(waits?.p50 ?? null)],
    ["whatIfMost", after(waits?.p90 ?? null)],
    ["whatIfLongest", after(waits?.max ?? null)],
    ["whatIfKept", percent(estimates.looks > 0 ? 1 - estimates.later / estimates.looks : null)],
  ];
  return (
    <section class="card" aria-labelledby="result">
      <h2 id="result">{t("whatIfResult")}</h2>
      <table>
        <tbody>
          {rows.map(([label, value]) => (
            <tr key={label}>
              <th scope="row">{t(label)}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="charts">
        <Chart title={t("whatIfLevels")} series={[series("waiting", "--one", true), series("inside", "--two")]} data={levels} span={span} show={whole} empty="" />
        <Chart
          title={t("whatIfFlow")}
          series={[series("joined", "--two"), series("admitted", "--one"), series("completed", "--three")]}
          data={flow}
          span={span}
          show={whole}
          empty=""
        />
      </div>
      <small>{t("whatIfStartsNow")}</small>
    </section>
  );
}
