// Summary parts: figures, states, processes, events.

import type { ComponentChildren } from "preact";
import type { RecentEvent, LineState, Overview } from "../api.js";
import { clock, count, shortName } from "../format.js";
import { t, tEnum } from "../i18n.js";

export function Figure({ name, hint, children }: { name: string; hint?: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {children}
        {hint && <small>{hint}</small>}
      </dd>
    </div>
  );
}

export const State = ({ state }: { state: LineState }) => <span class={`state ${state}`}>{tEnum("state", state)}</span>;

export function Processes({ overview }: { overview: Overview }) {
  const { schedulers, consumers } = overview;
  return (
    <section class="card" aria-labelledby="processes">
      <h2 id="processes">{t("processes")}</h2>
      <ul class="processes">
        {schedulers.map((one) => (
          <li key={one.replica} class={one.leading ? "leads" : ""}>
            <b title={one.replica}>
              {t("scheduler")} {shortName(one.replica)}
            </b>
            <span>
              {one.leading && one.since
                ? t("leading", { since: clock(one.since), epoch: one.epoch ?? "–", tick: one.lastTickMillis ?? "–" })
                : t("standby")}
            </span>
          </li>
        ))}
        {consumers.map((one) => (
          <li key={one.replica}>
            <b title={one.replica}>
              {t("consumer")} {shortName(one.replica)}
            </b>
            <span>
              {Object.entries(one.lag)
                .map(([topic, n]) => (n === null ? t("lagUnknown", { topic }) : t("lag", { topic, n: count(n) })))
                .join(" · ")}
            </span>
          </li>
        ))}
      </ul>
      {schedulers.every(({ leading }) => !leading) && <p class="grave">{t("noLeader")}</p>}
      {consumers.length === 0 && <p class="soft">{t("noConsumers")}</p>}
    </section>
  );
}

export function Events({ events, ofLine = false }: { events: RecentEvent[]; ofLine?: boolean }) {
  return (
    <section class="card" aria-labelledby="events">
      <h2 id="events">{t("events")}</h2>
      {events.length === 0 && <p class="soft">{t("noEvents")}</p>}
      {/* Focusable, so that it can be scrolled by keyboard. */}
      <ol class="events" tabIndex={0} aria-labelledby="events">
        {events.map(({ at, itemId, userId, reason }) => (
          <li key={`${itemId} ${userId} ${at} ${reason}`}>
            <time dateTime={at}>{clock(at)}</time>
            <span class={`event ${reason ?? "in"}`}>{reason ? tEnum("event", reason) : t("eventIn")}</span>
            <span class="user">{userId}</span>
            {!ofLine && <a href={lineAddress(itemId)}>{itemId}</a>}
          </li>
        ))}
      </ol>
    </section>
  );
}

export const lineAddress = (id: string): string => `#/line/${encodeURIComponent(id)}`;
