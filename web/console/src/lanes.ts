// The lanes of a line: the form's fields as the admin API takes them.

import type { LaneFigures, LanePolicy } from "./api.js";
import { t } from "./i18n.js";

/** Lanes of one item at most, besides the standard lane. */
export const MAX_LANES = 8;
const NAME = /^[A-Za-z0-9._~-]{1,32}$/;
/** The lane of users without an invitation. */
export const STANDARD = "standard";

/** A lane as it is typed. */
export interface LaneFields {
  /** Identifies the row of the form. */
  id: number;
  /** The name before the change; null for a new lane. */
  before: string | null;
  name: string;
  /** Percent. */
  weight: string;
  first: boolean;
}

export interface LaneErrors {
  name?: string;
  weight?: string;
}

export function fieldsOf(lanes: readonly LanePolicy[]): LaneFields[] {
  return lanes.map(({ name, weight, first }, id) => ({ id, before: name, name, weight: first ? "" : String(weight), first }));
}

export function lanesOf(rows: readonly LaneFields[]): LanePolicy[] {
  return rows.map(({ name, weight, first }) => ({ name, weight: first ? 0 : Number(weight), first }));
}

/** Returns the share of a row in percent; 0 if it has none or is not valid. */
function shareOf({ weight, first }: LaneFields): number {
  const share = Number(weight);
  return !first && Number.isInteger(share) && share > 0 ? share : 0;
}

/** Returns what the shares leave for the standard lane; less than 1 is an error. */
export const standardShare = (rows: readonly LaneFields[]): number => rows.reduce((left, row) => left - shareOf(row), 100);

/** Checks the lanes as the server does. The keys are those of the rows. */
export function errorsOf(rows: readonly LaneFields[]): Map<number, LaneErrors> {
  const errors = new Map<number, LaneErrors>();
  const left = standardShare(rows);
  const last = [...rows].reverse().find((row) => shareOf(row) > 0);
  rows.forEach((row, index) => {
    const found: LaneErrors = {};
    if (row.name === STANDARD) found.name = t("laneNameReserved");
    else if (!NAME.test(row.name)) found.name = t("laneNameInvalid");
    else if (rows.slice(0, index).some(({ name }) => name === row.name)) found.name = t("laneNameTwice");
    const share = shareOf(row);
    if (!row.first && (share < 1 || share > 99)) found.weight = t("laneShareInvalid");
    else if (row === last && left < 1) found.weight = t("laneSharesFull", { n: 100 - left });
    if (found.name || found.weight) errors.set(row.id, found);
  });
  return errors;
}

/** Returns the row that an error response of the server names by its lane, or null. */
export function rowIn(detail: string, rows: readonly LaneFields[]): number | null {
  const names = (row: LaneFields) => [row.before, row.name].some((name) => name && detail.includes(`"${name}"`));
  return rows.find(names)?.id ?? null;
}

/** Returns how many people wait in a lane or may return to it: its name is fixed meanwhile. */
export const peopleIn = ({ waiting, missed }: Pick<LaneFigures, "waiting" | "missed">): number => waiting + missed;
