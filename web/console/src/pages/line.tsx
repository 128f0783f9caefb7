// One line: current figures, history and controls.

import { useState } from "preact/hooks";
import { type Api, type Change, type LineDetail, type LineForecast, linePath, type Overview, type SignalCounts } from "../api.js";
import { Permitted, useMay } from "../caller.js";
import { clock, count, rate, percent, duration } from "../format.js";
import { Changes } from "../components/changes.js";
import { type Action, Dialog, NumberControl, Toast, useActions } from "../components/controls.js";
import { Events, Figure, State } from "../components/summary.js";
import { usePoll } from "../poll.js";
import { conversion } from "../series.js";
import { t, tEnum } from "../i18n.js";
import { Charts } from "./charts.js";
import { History } from "./history.js";
import { BrandingForm } from "./branding.js";
import { OpeningCard } from "./opening.js";
import { LanesCard } from "./lanes.js";
import { ConnectionLost, type PageProps } from "./page.js";
import { paceReason } from "./pace.js";
import { PolicyForm } from "./policy.js";

const SIGNALS = ["source", "headers", "earlyPolls", "noPage", "honeypot"] as const;

export function Line({ watch, id }: PageProps & { id: string }) {
  const line = usePoll<LineDetail>(watch, linePath(id, "line"));
  const changes = usePoll<{ entries: Change[] }>(watch, `/audit?itemId=${encodeURIComponent(id)}&limit=20`, 3000);
  const room = usePoll<Overview>(watch, "/overview?limit=0", 3000);
  const [act, message] = useActions(() => {
    line.again();
    changes.again();
  });
  const { data, lost, missing } = line;
  if (missing) {
    return (
      <main>
        <p class="card">{t("notFound")}</p>
      </main>
    );
  }
  if (!data) return <ConnectionLost lost={lost} />;
  return (
    <main>
      <ConnectionLost lost={lost} />
      <Head line={data} act={act} watch={watch} />
      <Summary line={data} />
      <Permitted role="operator">
        {data.item.policy.opening !== undefined && <OpeningCard line={data} act={act} watch={watch} />}
        {data.lanes !== undefined && <LanesCard line={data} lanes={data.lanes} act={act} watch={watch} />}
      </Permitted>
      <Charts watch={watch} line={data} />
      <History watch={watch} id={id} at={data.at} />
      <Permitted role="operator">
        <div class="columns">
          <Controls line={data} act={act} watch={watch} quota={room.data?.tokenCountToMove ?? null} />
          <PolicyForm item={data.item} save={(changes) => act(t("rulesSaved"), () => watch.api.send("PATCH", linePath(id, "policy"), changes))} />
          <BrandingForm look={data.item.policy.page} save={(page) => act(t("lookSaved"), () => watch.api.send("PATCH", linePath(id, "policy"), { page }))} />
        </div>
      </Permitted>
      <div class="columns">
        <Events events={data.events} ofLine />
        <section class="card" aria-labelledby="changes">
          <h2 id="changes">{t("changes")}</h2>
          <Changes changes={changes.data?.entries ?? []} ofLine />
        </section>
      </div>
      <Toast message={message} />
    </main>
  );
}

interface PartProps extends PageProps {
  line: LineDetail;
  act: Action;
}

function Head({ line: { item, people }, act, watch: { api } }: PartProps) {
  const [asking, setAsking] = useState(false);
  const mayReset = useMay("admin");
  const run = (call: "pause" | "resume" | "reset") =>
    act(t(`${call}Done`, { n: count(people.waiting) }), () => api.send("POST", linePath(item.itemId, call)));
  return (
    <header class="line">
      <div>
        <h1>{item.itemName}</h1>
        <p>
          <code>{item.itemId}</code> <State state={item.lineState} />
        </p>
      </div>
      <Permitted role="operator">
        <div class="row">
          {item.paused ? (
            <button type="button" class="ready" onClick={() => void run("resume")}>
              {t("resume")}
            </button>
          ) : (
            <button type="button" onClick={() => void run("pause")}>
              {t("pause")}
            </button>
          )}
          <button type="button" class="danger" disabled={!mayReset} onClick={() => setAsking(true)}>
            {t("reset")}
          </button>
        </div>
      </Permitted>
      {asking && (
        <Dialog title={t("resetAsk")} close={() => setAsking(false)}>
          <p>{t("resetText", { n: count(people.waiting) })}</p>
          <div class="menu">
            <button type="button" autofocus onClick={() => setAsking(false)}>
              {t("cancel")}
            </button>
            <button type="button" class="danger" onClick={() => void run("reset").then(() => setAsking(false))}>
              {t("resetYes", { n: count(people.waiting) })}
            </button>
          </div>
        </Dialog>
      )}
    </header>
  );
}

function Summary({ line: { people, item, admittedPerSecond, etaSeconds, estimates, pace, signals } }: { line: LineDetail }) {
  const aside = [
    people.returning > 0 && t("returning", { n: count(people.returning) }),
    people.missed > 0 && t("missed", { n: count(people.missed) }),
  ].filter(Boolean);
  return (
    <>
      <dl class="figures">
        <Figure name={t("waiting")} hint={aside.join(" · ")}>
          <span id="waiting">{count(people.waiting)}</span>
        </Figure>
        <Figure name={t("inside")} hint={item.policy.maxActive === null ? "" : `/ ${count(item.policy.maxActive)}`}>
          <span id="inside">{count(people.entered)}</span>
        </Figure>
        <Figure name={t("perSecond")}>{rate(admittedPerSecond)}</Figure>
        {pace && (
          <Figure name={t("pacePerMinute")} hint={paceReason(pace, item.policy.pace ?? "fixed")}>
            <span id="pace">{count(Math.round(pace.perMinute))}</span>
          </Figure>
        )}
        <Figure name={t("eta")} hint={keptHint(estimates)}>
          {duration(etaSeconds)}
        </Figure>
        <Figure name={t("stock")}>
          <span id="stock">{count(item.remainCount)}</span>
        </Figure>
        <Figure name={t("abandoned")}>{count(people.abandoned)}</Figure>
        <Figure name={t("conversion")} hint={t("conversionHint")}>
          {percent(conversion(people))}
        </Figure>
      </dl>
      <Front front={people.frontier} tail={people.tail} />
      {signals && <Automated signals={signals} joined={people.joined} />}
    </>
  );
}

/** Shows how many tickets look automated, by signal, and what the operator can do. */
function Automated({ signals, joined }: { signals: SignalCounts; joined: number }) {
  if (SIGNALS.every((name) => signals[name] === 0)) return null;
  return (
    <section class="card" aria-labelledby="signals">
      <h2 id="signals">{t("signals", { n: count(signals.automated), all: count(joined) })}</h2>
      <ul>
        {SIGNALS.map((name) => (
          <li key={name}>{tEnum("signal_", name).replace("{n}", count(signals[name]))}</li>
        ))}
      </ul>
      <p class="soft">
        {t("signalsText")} <a href="#/access">{t("access")}</a>
      </p>
    </section>
  );
}

/** Says what a change would do to those who wait now. */
async function forecastOf(api: Api, id: string, change: { tokensPerTick: number | null } | { maxActive: number | null }): Promise<string> {
  const { waiting, clearsAt, withoutTurn } = await api.send<LineForecast>("POST", linePath(id, "forecast"), change);
  if (waiting === 0) return t("forecastEmpty");
  const clears = clearsAt === null ? t("forecastNever") : t("forecastClears", { at: clock(clearsAt) });
  return withoutTurn > 0 ? `${clears} ${t("forecastWithout", { n: count(withoutTurn) })}` : clears;
}

/** Says how many of those admitted were admitted within the range they were shown. */
function keptHint(estimates: LineDetail["estimates"]): string {
  if (!estimates) return "";
  const { within, earlier, later } = estimates;
  const all = within + earlier + later;
  return all > 0 ? t("estimatesKept", { percent: percent((within + earlier) / all), n: count(all) }) : "";
}

/** Shows the frontier relative to the tail. */
function Front({ front, tail }: { front: number; tail: number }) {
  const text = t("frontText", { front: count(front), tail: count(tail) });
  return (
    <div class="front">
      <label for="front">{t("front")}</label>
      <progress id="front" max={Math.max(1, tail)} value={front} aria-valuetext={text} />
      <span>{text}</span>
    </div>
  );
}

function Controls({ line: { item }, act, watch: { api }, quota }: PartProps & { quota: number | null }) {
  const { itemName, remainCount, waitingQueueEnabled, policy } = item;
  const patch = (label: string, name: string, value: number | null) =>
    act(value === null ? t("valueRemoved", { what: label }) : t("valueSet", { what: label, n: count(value) }), () =>
      api.send("PATCH", linePath(item.itemId, "policy"), { [name]: value }),
    );
  const update = (change: object) => () =>
    api.send("POST", linePath(item.itemId, "manually"), { itemName, remainCount, waitingQueueEnabled, ...change });
  /** The action of the switch, and how it is reverted. */
  const on = policy.opening ? "lineFollowsOpening" : "lineOpened";
  const enable = (isOpen: boolean) => ({ done: t(isOpen ? on : "lineClosed"), work: update({ waitingQueueEnabled: isOpen }) });
  const turn = (isOpen: boolean) => act(enable(isOpen).done, enable(isOpen).work, isOpen ? undefined : enable(true));
  return (
    <section class="card" aria-labelledby="controls">
      <h2 id="controls">{t("controls")}</h2>
      <div class="controls">
        <NumberControl
          label={t("lineQuota")}
          hint={t("lineQuotaHint", { n: quota === null ? "–" : count(quota) })}
          value={policy.tokensPerTick}
          optional
          max={1_000_000}
          set={(value) => patch(t("lineQuota"), "tokensPerTick", value)}
          forecast={(tokensPerTick) => forecastOf(api, item.itemId, { tokensPerTick })}
        />
        <NumberControl
          label={t("capacity")}
          hint={t("capacityHint")}
          value={policy.maxActive}
          optional
          min={1}
          max={1_000_000_000}
          set={(value) => patch(t("capacity"), "maxActive", value)}
          forecast={(maxActive) => forecastOf(api, item.itemId, { maxActive })}
        />
        <NumberControl
          label={t("stock")}
          hint={t("stockHint")}
          value={remainCount}
          max={4_294_967_295}
          set={(value) => act(t("valueSet", { what: t("stock"), n: count(value ?? 0) }), update({ remainCount: value }))}
        />
      </div>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          checked={waitingQueueEnabled}
          onChange={(event) => void turn(event.currentTarget.checked)}
        />
        {t(policy.opening ? "enabledWithOpening" : "enabled")}
      </label>
    </section>
  );
}
