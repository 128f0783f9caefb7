// Formats figures.

import { language, t } from "./i18n.js";

const whole = new Intl.NumberFormat(language);
const tenths = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const percentFormat = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 });
const time = new Intl.DateTimeFormat(language, { timeStyle: "medium", hourCycle: "h23" });
const moment = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const count = (n: number): string => whole.format(n);

/** Formats a rate; with decimals below 100 only. */
export function rate(n: number | null): string {
  if (n === null) return "–";
  return n >= 100 ? whole.format(Math.round(n)) : tenths.format(n);
}

export const percent = (n: number | null): string => (n === null ? "–" : percentFormat.format(n));

/** Formats a duration in its largest unit. */
export function duration(seconds: number | null): string {
  if (seconds === null) return "–";
  if (seconds < 120) return t("seconds", { n: whole.format(seconds) });
  if (seconds < 7200) return t("minutes", { n: whole.format(Math.round(seconds / 60)) });
  return t("hours", { n: whole.format(Math.round(seconds / 3600)) });
}

export const clock = (rfc3339: string): string => time.format(new Date(rfc3339));
export const date = (rfc3339: string): string => moment.format(new Date(rfc3339));

/** Shortens a replica name (host, process, random number) to host and random number. */
export function shortName(replica: string): string {
  const parts = replica.split("-");
  return parts.length > 2 ? `${parts.slice(0, -2).join("-").slice(0, 18)}·${parts.at(-1)?.slice(0, 4)}` : replica;
}

/** Maximum length of a text in a table; embedded images are far longer. */
const MAX_TEXT = 80;

/** Formats a value of the audit log compactly. */
export function compact(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "object") {
    const text = String(value);
    return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  }
  const pairs = Object.entries(value).map(([name, inner]) => `${name} ${compact(inner)}`);
  return pairs.join(", ") || "–";
}
