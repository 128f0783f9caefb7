// The page's words. Which language they are in is the server's choice.

import type { Eta } from "../../../sdk/js/src/index.js";
import type en from "../words/en.json";

export type Words = typeof en;

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (slot, key: string) => String(values[key] ?? slot));
}

/** A range that promises no more than is known. Kept in step with `eta_words` of the server. */
export function etaWords(words: Words, eta: Eta | null): string {
  if (!eta) return words.etaUnknown;
  if (eta.p90 < 60) return words.etaSoon;
  const [a, b] = [Math.max(1, Math.round(eta.p50 / 60)), Math.ceil(eta.p90 / 60)];
  if (b <= 1) return words.etaMinute;
  if (b <= 90) return fill(a < b ? words.etaMinutesRange : words.etaMinutes, { a, b });
  const [from, to] = [Math.max(1, Math.round(eta.p50 / 3600)), Math.ceil(eta.p90 / 3600)];
  if (from < to) return fill(words.etaHoursRange, { a: from, b: to });
  return to === 1 ? words.etaHour : fill(words.etaHours, { a: to });
}

/** Minutes and seconds, or hours where it is long. */
export function clock(ms: number): string {
  const all = Math.max(0, Math.ceil(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}
