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

/** Formats a number of people as words. */
export const people = (n: number): string => t(n === 1 ? "onePerson" : "somePeople", { n: count(n) });

/** Formats a time to come to the second, with days if it is more than one. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const two = (n: number) => String(n).padStart(2, "0");
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  const time = `${days || hours ? `${days ? two(hours) : hours}:` : ""}${two(minutes)}:${two(seconds % 60)}`;
  return days ? t("days", { n: count(days), time }) : time;
}

/** Formats a time for reading: with the date unless it is today, with seconds if there are any. */
export function timeOf(rfc3339: string, now: number): string {
  const at = new Date(rfc3339);
  const isToday = at.toDateString() === new Date(now).toDateString();
  const day = isToday ? {} : ({ month: "short", day: "numeric", ...(at.getFullYear() !== new Date(now).getFullYear() && { year: "numeric" }) } as const);
  const seconds = at.getSeconds() === 0 ? {} : ({ second: "2-digit" } as const);
  return new Intl.DateTimeFormat(language, { ...day, hour: "2-digit", minute: "2-digit", ...seconds, hourCycle: "h23" }).format(at);
}

/** The operator's time zone, with its difference to UTC at a time. */
export function zoneOf(at: number): string {
  const format = new Intl.DateTimeFormat(language, { timeZoneName: "shortOffset" });
  const offset = format.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const { timeZone } = format.resolvedOptions();
  return offset && offset !== timeZone ? `${timeZone} (${offset})` : timeZone;
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
  if (Array.isArray(value)) return value.map(compact).join("; ") || "–";
  const pairs = Object.entries(value).map(([name, inner]) => `${name} ${compact(inner)}`);
  return pairs.join(", ") || "–";
}
