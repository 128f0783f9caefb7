// The texts of the page. The server chooses the language.

import type { Eta } from "../../../sdk/js/src/index.js";
import type en from "../i18n/en.json";

export type Messages = typeof en;

export function format(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (slot, key: string) => String(values[key] ?? slot));
}

/** Formats an ETA as a range. Must match `Messages::eta` of the server. */
export function formatEta(messages: Messages, eta: Eta | null): string {
  if (!eta) return messages.etaUnknown;
  if (eta.p90 < 60) return messages.etaSoon;
  const [a, b] = [Math.max(1, Math.round(eta.p50 / 60)), Math.ceil(eta.p90 / 60)];
  if (b <= 1) return messages.etaMinute;
  if (b <= 90) return format(a < b ? messages.etaMinutesRange : messages.etaMinutes, { a, b });
  const [from, to] = [Math.max(1, Math.round(eta.p50 / 3600)), Math.ceil(eta.p90 / 3600)];
  if (from < to) return format(messages.etaHoursRange, { a: from, b: to });
  return to === 1 ? messages.etaHour : format(messages.etaHours, { a: to });
}

/** Formats a duration as m:ss or h:mm:ss. */
export function clock(ms: number): string {
  const all = Math.max(0, Math.ceil(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}
