// Figures as people read them.

import { language, say } from "./words.js";

const whole = new Intl.NumberFormat(language);
const tenths = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 });
const time = new Intl.DateTimeFormat(language, { timeStyle: "medium", hourCycle: "h23" });
const moment = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const count = (n: number): string => whole.format(n);

/** People per second; nobody needs the tenth of a hundred. */
export function rate(n: number | null): string {
  if (n === null) return "–";
  return n >= 100 ? whole.format(Math.round(n)) : tenths.format(n);
}

export const share = (n: number | null): string => (n === null ? "–" : percent.format(n));

/** A stretch of time in its largest unit. */
export function stretch(seconds: number | null): string {
  if (seconds === null) return "–";
  if (seconds < 120) return say("seconds", { n: whole.format(seconds) });
  if (seconds < 7200) return say("minutes", { n: whole.format(Math.round(seconds / 60)) });
  return say("hours", { n: whole.format(Math.round(seconds / 3600)) });
}

export const clock = (rfc3339: string): string => time.format(new Date(rfc3339));
export const date = (rfc3339: string): string => moment.format(new Date(rfc3339));

/** Replicas are named after host, process and a random number; the last tells them apart. */
export function shortName(replica: string): string {
  const parts = replica.split("-");
  return parts.length > 2 ? `${parts.slice(0, -2).join("-").slice(0, 18)}·${parts.at(-1)?.slice(0, 4)}` : replica;
}

/** The longest text in a table; a picture is far longer. */
const LONGEST = 80;

/** A value of the audit log, as short as it can be. */
export function brief(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "object") {
    const text = String(value);
    return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  }
  const pairs = Object.entries(value).map(([name, inner]) => `${name} ${brief(inner)}`);
  return pairs.join(", ") || "–";
}
