// The result of checking a draw, in words.

import type { DrawRecord } from "../../../sdk/js/src/index.js";
import type { Messages } from "./i18n.js";

/** The result of `checkDraw`. Its names are those of docs/DRAW.md. */
export interface CheckResult {
  checks: { name: string; ok: boolean }[];
}

export interface Verdict {
  isGood: boolean;
  text: string;
  findings: { text: string; ok: boolean }[];
}

/** What the page expects of the record. */
export interface Expected {
  /** The rank that the page shows. */
  rank: number;
  /** The commitment that the page noted before the opening, if it was open then. */
  commitment?: string | undefined;
}

/** The checks behind each sentence. */
const SENTENCES = [
  { names: ["version", "fields", "drawn"], good: "drawRecordGood", bad: "drawRecordBad" },
  { names: ["commitment"], good: "drawSecretGood", bad: "drawSecretBad" },
  { names: ["noted"], good: "drawNotedGood", bad: "drawNotedBad" },
  { names: ["beacon"], good: "drawBeaconGood", bad: "drawBeaconBad" },
  { names: ["seed"], good: "drawSeedGood", bad: "drawSeedBad" },
  { names: ["number", "path", "token"], good: "drawListGood", bad: "drawListBad" },
  { names: ["rank", "shown"], good: "drawPlaceGood", bad: "drawPlaceBad" },
] as const satisfies { names: string[]; good: keyof Messages; bad: keyof Messages }[];

/** Returns the verdict on a draw: the checks of its record, and those that only this page can make. */
export function verdictOf(record: DrawRecord, { checks }: CheckResult, expected: Expected, messages: Messages): Verdict {
  const { commitment, rank } = expected;
  const all = [
    // A draw without a beacon has nothing to confirm, but a beacon that is missing fails.
    ...checks.filter(({ name, ok }) => name !== "beacon" || !ok || record.beacon !== null),
    // A record without a draw, or without this ticket, passes the checks that apply to it.
    { name: "drawn", ok: record.state === "DRAWN" && record.ticket != null },
    ...(commitment ? [{ name: "noted", ok: record.commitment === commitment }] : []),
    { name: "shown", ok: record.ticket?.rank === rank },
  ];
  const isGood = all.every(({ ok }) => ok);
  const findings = SENTENCES.flatMap(({ names, good, bad }) => {
    const made = all.filter(({ name }) => (names as readonly string[]).includes(name));
    if (made.some((check) => !check.ok)) return [{ text: messages[bad], ok: false }];
    // A record with a fault is not checked to the end: what was not checked is not confirmed.
    return made.length === names.length ? [{ text: messages[good], ok: true }] : [];
  });
  // A check that this page has no words for is a failure without a sentence of its own.
  const reason = findings.find(({ ok }) => !ok)?.text ?? "";
  // Without a beacon the organiser knew the secret, and could try orders by adding tickets.
  const good = record.beacon === null ? messages.drawGood : messages.drawGoodBeacon;
  const text = isGood ? good : `${messages.drawBad} ${reason}`.trim();
  return { isGood, text, findings };
}
