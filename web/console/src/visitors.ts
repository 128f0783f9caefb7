// The stored history of a line and its visitors, as the charts need them.

import type { Drawn } from "./series.js";
import { language, tEnum } from "./i18n.js";

/** The figures of a line by step; null where nothing was recorded. */
export interface LineMinutes {
  stepMinutes: number;
  /** RFC 3339. */
  at: string[];
  waiting: (number | null)[];
  entered: (number | null)[];
  joined: (number | null)[];
  admitted: (number | null)[];
  completed: (number | null)[];
}

export interface Share {
  name: string;
  count: number;
  /** From 0 to 1. */
  share: number;
}

export interface Percentiles {
  count: number;
  p50: number | null;
  p75: number | null;
  p95: number | null;
}

/** What is counted about visits in shares. */
export const DIMENSIONS = ["device", "browser", "access", "country", "language"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface Visitors extends Record<Dimension, Share[]> {
  visits: number;
  pageViews: number;
  reconnects: number;
  leaves: number;
  pageLoadMs: Percentiles;
  timeToLeaveSeconds: Percentiles;
}

const MINUTE_MS = 60_000;
/** Shares that are shown; the rest is in the CSV file. */
const MAX_SHOWN = 8;

/** Returns the query of a period that ends now. It changes once per minute only, so that polls have the same address. */
export function periodQuery(hours: number, now: number): string {
  const from = Math.floor(now / MINUTE_MS) * MINUTE_MS - hours * 60 * MINUTE_MS;
  return `from=${new Date(from).toISOString()}`;
}

/** Returns counts over time. */
export function drawnLevels({ at, waiting, entered }: LineMinutes): Drawn {
  return [secondsOf(at), waiting, entered];
}

/** Returns what happened per minute. */
export function drawnFlow({ at, stepMinutes, joined, admitted, completed }: LineMinutes): Drawn {
  const perMinute = (list: (number | null)[]) => list.map((count) => (count === null ? null : count / stepMinutes));
  return [secondsOf(at), perMinute(joined), perMinute(admitted), perMinute(completed)];
}

const secondsOf = (at: string[]) => at.map((time) => Date.parse(time) / 1000);

/** Returns the shares that are shown: the largest, and all others together. */
export function shownShares(shares: readonly Share[]): Share[] {
  if (shares.length <= MAX_SHOWN) return [...shares];
  const [shown, rest] = [shares.slice(0, MAX_SHOWN - 1), shares.slice(MAX_SHOWN - 1)];
  const sum = (figure: (share: Share) => number) => rest.reduce((all, share) => all + figure(share), 0);
  return [...shown, { name: "rest", count: sum(({ count }) => count), share: sum(({ share }) => share) }];
}

const CODES: Partial<Record<Dimension, Intl.DisplayNames>> = {
  country: new Intl.DisplayNames(language, { type: "region" }),
  language: new Intl.DisplayNames(language, { type: "language" }),
};

/** Returns a value in the operator's language. */
export function valueName(dimension: Dimension, name: string): string {
  const isCode = name.length === 2;
  return (isCode && CODES[dimension]?.of(name)) || tEnum("visit_", name);
}
