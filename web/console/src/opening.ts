// The opening of a line: its stage, the plan as a sentence, and the form's fields as the admin API takes them.

import type { DrawBeacon, Item, Opening, Order } from "./api.js";
import { timeOf } from "./format.js";
import { type Key, t } from "./i18n.js";

/** `none`: no opening is planned. `closed`: its closing time is over. */
export type Stage = "none" | "scheduled" | "lobby" | "opened" | "closed";

/** The form's fields as they are typed. Times are of the operator's time zone, as `datetime-local` has them; empty is null. */
export interface OpeningFields {
  opensAt: string;
  lobbyAt: string;
  closesAt: string;
  order: Order;
  /** Whether a public random number is mixed into the draw. */
  usesBeacon: boolean;
  /** The drand round; empty for the one that the server chooses. */
  beacon: string;
}

export type OpeningErrors = Partial<Record<keyof OpeningFields, string>>;

/** A line that is disabled or paused has a stage, too, so the line state alone does not decide. */
export function stageOf({ lineState, openedAt, policy: { opening } }: Pick<Item, "lineState" | "openedAt" | "policy">, now: number): Stage {
  if (!opening) return "none";
  if (lineState === "CLOSED") return "closed";
  if (lineState === "LOBBY") return "lobby";
  if (lineState === "SCHEDULED") return "scheduled";
  if (openedAt) return isPast(opening.closesAt, now) ? "closed" : "opened";
  return opening.lobbyAt === null || isPast(opening.lobbyAt, now) ? "lobby" : "scheduled";
}

const isPast = (at: string | null, now: number): boolean => at !== null && Date.parse(at) <= now;

export function fieldsOf(opening: Opening | null | undefined): OpeningFields {
  return {
    opensAt: toLocal(opening?.opensAt ?? null),
    lobbyAt: toLocal(opening?.lobbyAt ?? null),
    closesAt: toLocal(opening?.closesAt ?? null),
    order: opening?.order ?? "arrival",
    usesBeacon: Boolean(opening?.beacon),
    beacon: namedRound(opening),
  };
}

/** The opening that the fields describe. */
export function openingOf(fields: OpeningFields): Opening {
  const usesBeacon = fields.order === "draw" && fields.usesBeacon;
  return {
    opensAt: fromLocal(fields.opensAt),
    lobbyAt: fromLocal(fields.lobbyAt),
    closesAt: fromLocal(fields.closesAt),
    order: fields.order,
    beacon: usesBeacon ? { kind: "drand", round: fields.beacon === "" ? null : Number(fields.beacon) } : null,
  };
}

/**
 * What to send: the fields that differ, because the server refuses times in the past, and those of a planned opening may have
 * passed. A new opening is compared with an empty one, but its order and its time are always named.
 */
export function changesOf(typed: OpeningFields, before: Opening | null | undefined): Partial<Opening> {
  const after = openingOf(typed);
  const shown = openingOf(fieldsOf(before));
  const changed = Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(shown[name as keyof Opening]));
  const always = before ? {} : { opensAt: after.opensAt, order: after.order };
  const changes: Partial<Opening> = { ...always, ...Object.fromEntries(changed) };
  // The round that the server chose belongs to the former time.
  return before?.beacon && after.beacon?.round === null && changes.opensAt !== undefined ? { ...changes, beacon: after.beacon } : changes;
}

/** Checks changed fields as the server does, so that an error is shown before anything is sent. */
export function errorsOf(typed: OpeningFields, before: Opening | null | undefined, now: number): OpeningErrors {
  const { opensAt, lobbyAt, closesAt } = openingOf(typed);
  const changes = changesOf(typed, before);
  const errors: OpeningErrors = {};
  // A lobby in the past is open.
  if (lobbyAt && opensAt && lobbyAt > opensAt) errors.lobbyAt = t("openingLobbyLate");
  if (opensAt && changes.opensAt && isPast(opensAt, now)) errors.opensAt = t("openingPast");
  if (closesAt && changes.closesAt && isPast(closesAt, now)) errors.closesAt = t("openingPast");
  else if (closesAt && ((opensAt && closesAt <= opensAt) || (lobbyAt && closesAt <= lobbyAt))) errors.closesAt = t("openingCloseEarly");
  if (typed.order === "draw" && typed.usesBeacon && typed.beacon !== "") {
    const error = roundError(Number(typed.beacon), opensAt);
    if (error) errors.beacon = error;
  }
  return errors;
}

/** The first round of drand's quicknet in Unix milliseconds, and the time between two rounds. */
const FIRST_ROUND_MS = 1_692_803_367_000;
const ROUND_MS = 3_000;
/** The server chooses the first round that is published at least this long after the opening. */
const BEACON_LEAD_MS = 10_000;
const MAX_BEACON_WAIT_MS = 600_000;
/** A round is late after this time. */
const OVERDUE_MS = 5_000;

/** Returns when a round is published, in Unix milliseconds. */
export const publishedAt = (round: number): number => FIRST_ROUND_MS + ROUND_MS * (round - 1);

/** Returns the round that the server chooses for an opening at this time. */
export const chosenRound = (opensAt: string): number =>
  Math.max(0, Math.ceil((Date.parse(opensAt) + BEACON_LEAD_MS - FIRST_ROUND_MS) / ROUND_MS)) + 1;

/** Returns the round of an opening as text; empty if it is the one that the server chooses. */
function namedRound(opening: Opening | null | undefined): string {
  const round = opening?.beacon?.round;
  if (!round || !opening) return "";
  return opening.opensAt !== null && chosenRound(opening.opensAt) === round ? "" : String(round);
}

function roundError(round: number, opensAt: string | null): string | null {
  if (!(Number.isSafeInteger(round) && round > 0)) return t("beaconInvalid");
  if (opensAt === null) return t("beaconByHand");
  const after = publishedAt(round) - Date.parse(opensAt);
  return after > 0 && after <= MAX_BEACON_WAIT_MS ? null : t("beaconTime", { round: String(chosenRound(opensAt)) });
}

/** Says which round the form's fields mean, and when it is published. */
export function roundText({ opensAt, beacon }: Opening, now: number): string {
  const round = beacon?.round ?? (opensAt === null ? null : chosenRound(opensAt));
  if (round === null || !Number.isSafeInteger(round) || round < 1) return t("beaconChosenLater");
  return t("beaconRound", { round: String(round), at: timeOf(new Date(publishedAt(round)).toISOString(), now) });
}

/** Whether the cohort of a draw is fixed, and the line waits for the random number. */
export function isDrawing({ draw, openedAt }: Pick<Item, "draw" | "openedAt">): boolean {
  return Boolean(draw?.beacon) && draw?.cohortSize !== null && !openedAt;
}

export const isOverdue = ({ publishedAt: at, signature }: DrawBeacon, now: number): boolean => signature === null && now - Date.parse(at) >= OVERDUE_MS;

/** Returns the signature in what an operator pasted: 96 hexadecimal digits, alone or in the response of a relay. */
export function signatureIn(text: string): string | null {
  const named = /"signature"\s*:\s*"([0-9a-fA-F]{96})"/.exec(text)?.[1];
  return (named ?? /^\s*([0-9a-fA-F]{96})\s*$/.exec(text)?.[1])?.toLowerCase() ?? null;
}

/** Returns the field that an error response of the server names first, or null. */
export function fieldIn(detail: string): keyof OpeningFields | null {
  return (/\b(opensAt|lobbyAt|closesAt|order|beacon)\b/.exec(detail)?.[1] as keyof OpeningFields | undefined) ?? null;
}

/** Says what will happen, in one sentence. A plan that is not saved has no open lobby. */
export function planText({ opensAt, lobbyAt, closesAt, order }: Opening, now: number, isSaved = true): string {
  const at = (key: Key, otherwise: Key, time: string | null) => {
    const orderText = { order: t(`planOrder${order}`) };
    return time === null ? t(otherwise, orderText) : t(key, { at: timeOf(time, now), ...orderText });
  };
  return t("plan", {
    lobby: lobbyAt !== null && isPast(lobbyAt, now) ? t("planLobbySince", { at: timeOf(lobbyAt, now) }) : at("planLobbyAt", isSaved ? "planLobbyOpen" : "planLobbyNow", lobbyAt),
    opens: at("planOpensAt", "planOpensByHand", opensAt),
    closes: at("planClosesAt", "planStaysOpen", closesAt),
  });
}

/** Formats a time for `datetime-local`; seconds only if there are any. */
export function toLocal(at: string | null): string {
  if (at === null) return "";
  const date = new Date(at);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const seconds = date.getSeconds() === 0 ? "" : `:${two(date.getSeconds())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}${seconds}`;
}

export function fromLocal(text: string): string | null {
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}
