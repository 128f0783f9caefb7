// The estimated wait as a time of day with a range.

import type { Eta } from "../../../sdk/js/src/index.js";
import { format, formatTime, type Messages, timeFormat } from "./i18n.js";

const MINUTE_MS = 60_000;

/** For how long a time of day is clear without its day. */
const CLEAR_MS = 12 * 3_600_000;

type Shown = ReturnType<typeof formatTime>;

/** When the user is expected to enter, in milliseconds since the epoch. */
export interface EtaWindow {
  at: number;
  from: number;
  until: number;
}

/**
 * Returns the window of an estimate, rounded to what is known: to 5 minutes for a wait of half an hour or a wide range, to 15 for
 * hours. It is rounded outwards, so that it holds at least as often as the estimate. Without the 10th percentile, from an older
 * server, the range is as wide before the median as behind it.
 */
export function etaWindow({ p10, p50, p90 }: Eta, now: number): EtaWindow {
  const spread = Math.max(0, p90 - p50);
  const early = p10 ?? Math.max(0, p50 - spread);
  const minutes = p90 >= 10_800 || spread >= 3_600 ? 15 : p90 >= 1_800 || spread >= 600 ? 5 : 1;
  const unit = minutes * MINUTE_MS;
  const from = Math.floor((now + early * 1000) / unit) * unit;
  const until = Math.ceil((now + p90 * 1000) / unit) * unit;
  const at = Math.round((now + p50 * 1000) / unit) * unit;
  // The present minute at the earliest.
  return { at, from: Math.max(from, Math.floor(now / MINUTE_MS) * MINUTE_MS), until };
}

/** Formats an estimate. `now` is the server's time. */
export function etaText(messages: Messages, eta: Eta | null, now: number, locale: string, timeZone?: string): string {
  if (!eta) return messages.etaUnknown;
  if (eta.p90 < 60) return messages.etaSoon;
  const { at, from, until } = etaWindow(eta, now);
  const times = timeFormat(locale, {}, timeZone);
  const [t, first, last] = [at, from, until].map((time) => formatTime(new Date(time).toISOString(), time - now, locale, timeZone)) as [Shown, Shown, Shown];
  // A range of two times of the same day repeats neither the date nor "PM".
  if (first.isToday && last.isToday) return format(messages.etaAround, { t: t.text, range: times.formatRange(from, until) });
  // A time within the next hours is clear without its day.
  const text = (time: number, { text }: Shown) => (until - now < CLEAR_MS ? times.format(time) : text);
  return format(messages.etaAround, { t: text(at, t), range: `${text(from, first)}–${text(until, last)}` });
}
