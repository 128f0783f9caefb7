// Invitation codes: the form's fields as the admin API takes them, and the file with the codes.

import type { Invitations } from "./api.js";
import { t } from "./i18n.js";
import { fromLocal } from "./opening.js";

/** The form's fields as they are typed. The time is of the operator's time zone. */
export interface CodeFields {
  lane: string;
  count: string;
  usesEach: string;
  expiresAt: string;
}

export type CodeErrors = Partial<Record<keyof CodeFields, string>>;

/** The request that the fields describe. */
export function requestOf({ lane, count, usesEach, expiresAt }: CodeFields) {
  return { lane, count: Number(count), usesEach: Number(usesEach), expiresAt: fromLocal(expiresAt) };
}

/** Checks the fields before anything is sent. The server has the last word on limits. */
export function errorsOf(fields: CodeFields, now: number): CodeErrors {
  const { count, usesEach, expiresAt } = requestOf(fields);
  const errors: CodeErrors = {};
  for (const [name, value] of Object.entries({ count, usesEach })) {
    if (!Number.isSafeInteger(value) || value < 1) errors[name as "count" | "usesEach"] = t("codesNumberInvalid");
  }
  if (expiresAt === null) errors.expiresAt = t("codesExpiryMissing");
  else if (Date.parse(expiresAt) <= now) errors.expiresAt = t("openingPast");
  return errors;
}

/** Returns the field that an error response of the server names first, or null. */
export function fieldIn(detail: string): keyof CodeFields | null {
  return (/\b(lane|count|usesEach|expiresAt)\b/.exec(detail)?.[1] as keyof CodeFields | undefined) ?? null;
}

/** Returns the codes as CSV (RFC 4180). `link` returns the link of a code, empty if the public address is not known. */
export function csvOf({ lane, usesEach, expiresAt, codes }: Invitations, link: (code: string) => string): string {
  const rows = codes.map((code) => [code, lane, String(usesEach), expiresAt, link(code)]);
  return [["code", "lane", "usesEach", "expiresAt", "link"], ...rows].map((row) => `${row.map(quoted).join(",")}\r\n`).join("");
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
