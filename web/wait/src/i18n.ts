// The texts of the page. The server chooses the language.

import type { LocalTexts, PageTexts } from "../../../sdk/js/src/index.js";
import type en from "../i18n/en.json";

export type Messages = typeof en;

export function format(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (slot, key: string) => String(values[key] ?? slot));
}

/** Formats a duration as m:ss or h:mm:ss. */
export function clock(ms: number): string {
  const all = Math.max(0, Math.ceil(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

const DAY_MS = 86_400_000;

/** Formats a countdown: the days in the words of the locale, and the rest as a clock. */
export function countdownText(ms: number, locale: string): string {
  // In whole seconds, so that 24 h are one day and not 0 days and 24 h.
  const whole = Math.max(0, Math.ceil(ms / 1000)) * 1000;
  const days = Math.floor(whole / DAY_MS);
  if (days === 0) return clock(whole);
  const unit = new Intl.NumberFormat(locale, { style: "unit", unit: "day", unitDisplay: "long" });
  const rest = new Date(whole % DAY_MS).toISOString().slice(11, 19);
  return `${unit.format(days)} ${rest}`;
}

/**
 * Formats a time in the user's time zone: without the date if it is today. Today follows from the server's clock, because
 * the one of the user's machine may be wrong.
 */
export function formatTime(at: string, inMs: number, locale: string, timeZone?: string): { text: string; isToday: boolean } {
  const time = new Date(at);
  const zone = timeZone === undefined ? {} : { timeZone };
  const day = new Intl.DateTimeFormat("en", { dateStyle: "short", ...zone });
  const isToday = day.format(time) === day.format(time.getTime() - inMs);
  const seconds: Intl.DateTimeFormatOptions = time.getUTCSeconds() === 0 ? {} : { second: "2-digit" };
  const date: Intl.DateTimeFormatOptions = isToday ? {} : { weekday: "short", month: "short", day: "numeric" };
  return { text: timeFormat(locale, { ...date, ...seconds }, timeZone).format(time), isToday };
}

/** Returns the format of times of day. */
export function timeFormat(locale: string, options: Intl.DateTimeFormatOptions, timeZone?: string): Intl.DateTimeFormat {
  // Engines differ in the Korean words for a.m. and p.m.: some write "PM 8:00".
  const cycle: Intl.DateTimeFormatOptions = locale.startsWith("ko") ? { hourCycle: "h23" } : {};
  return new Intl.DateTimeFormat(locale, { ...options, hour: "numeric", minute: "2-digit", ...cycle, ...(timeZone !== undefined && { timeZone }) });
}

/** Returns the user's variant of the page's language, such as `en-GB` with its 24-hour clock. */
export function localeOf(language: string, preferred: readonly string[]): string {
  return preferred.find((tag) => tag.split("-")[0] === language) ?? language;
}

/** Returns the operator's texts in a language. */
export function localTexts({ languages, ...texts }: PageTexts, language: string): LocalTexts {
  return languages?.[language] ?? texts;
}
