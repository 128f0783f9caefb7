import { verify, type KeyObject } from "node:crypto";
import { isItem } from "./item.js";
import { Refusal } from "./refusal.js";

/**
 * A person who was let in, as their pass says. All passes of an entry have `itemId`, `userId` and `number` in common: the key
 * for one order per entry.
 */
export interface Entry {
  userId: string;
  itemId: string;
  /** The pass's own id. Another one once daegi signs with another ticket secret. */
  passId: string;
  /** Their number in the line. */
  number: number;
  /** When the entry ends, in seconds since 1970. */
  expiresAt: number;
  /** Whether the signature was checked. False only under `whenAway: "letIn"`. */
  genuine: boolean;
  /** The ticket's token, by which daegi knows the entry. */
  token: string;
}

const ISSUER = "daegi";
const BASE64URL = /^[A-Za-z0-9_-]+$/;
const USER = /^[A-Za-z0-9._~@:+-]{1,128}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The id of the key that signed a pass, by its own words. */
export function kidOf(pass: string): string {
  const parts = pass.split(".");
  const header = parts.length === 3 ? object(parts[0]) : {};
  // The algorithm is ours to say, never the pass's.
  if (header["alg"] !== "EdDSA" || typeof header["kid"] !== "string") throw new Refusal("PASS_INVALID");
  return header["kid"];
}

/** The entry that a pass is proof of, to this item and now. Without a key its signature is not checked. */
export function entryFrom(pass: string, key: KeyObject | null, item: string, now: number, skew: number): Entry {
  if (key !== null && !isSigned(pass, key)) throw new Refusal("PASS_INVALID");
  const { iss, aud, sub, jti, num, iat, exp, nbf } = object(pass.split(".")[1]);
  const whole = matches(sub, USER) && matches(jti, UUID) && isItem(aud) && isCount(num) && isCount(iat) && isCount(exp);
  if (!whole || iss !== ISSUER || !(nbf === undefined || isCount(nbf))) throw new Refusal("PASS_INVALID");
  if (aud !== item) throw new Refusal("PASS_OTHER_ITEM");
  if (Math.max(iat, nbf ?? 0) > now + skew) throw new Refusal("PASS_NOT_YET_VALID");
  if (exp + skew <= now) throw new Refusal("PASS_EXPIRED");
  const token = `${sub}-${aud}-${jti}`;
  return { userId: sub, itemId: aud, passId: jti, number: num, expiresAt: exp, genuine: key !== null, token };
}

function isSigned(pass: string, key: KeyObject): boolean {
  const end = pass.lastIndexOf(".");
  const signature = pass.slice(end + 1);
  // Node reads over characters that do not belong there.
  if (!BASE64URL.test(signature)) return false;
  return verify(null, Buffer.from(pass.slice(0, end)), key, Buffer.from(signature, "base64url"));
}

/** The object that a part of a JWT is; empty if it is none. */
function object(part: string | undefined): Record<string, unknown> {
  if (part === undefined || !BASE64URL.test(part)) return {};
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
