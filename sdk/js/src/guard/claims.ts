import { verify, type KeyObject } from "node:crypto";
import { isItem } from "./item.js";
import { Refusal } from "./refusal.js";

/**
 * An admitted user, as stated by their pass. All passes of an entry share `itemId`, `userId` and `number`: use these as the key
 * for one order per entry.
 */
export interface Entry {
  userId: string;
  itemId: string;
  /** The id of the pass. It changes when daegi's ticket secret is rotated. */
  passId: string;
  /** The ticket's number, unique in its lane. */
  number: number;
  /** The name of the ticket's lane; `null` for the standard lane. */
  lane: string | null;
  /** When the entry expires, in seconds since the Unix epoch. */
  expiresAt: number;
  /** Whether the signature was verified. False only with `onUnavailable: "failOpen"`. */
  signatureVerified: boolean;
  /** The ticket's token, which identifies the entry to daegi. */
  token: string;
}

const ISSUER = "daegi";
/** The one algorithm of each type of key. */
const ALGORITHMS: Record<string, string> = { ed25519: "EdDSA", ec: "ES256", rsa: "RS256" };
const BASE64URL = /^[A-Za-z0-9_-]+$/;
const USER = /^[A-Za-z0-9._~@:+-]{1,128}$/;
const LANE = /^(?!standard$)[A-Za-z0-9._~-]{1,32}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reads the key id from the JWT header. It is unverified. */
export function kidOf(pass: string): string {
  const parts = pass.split(".");
  const header = parts.length === 3 ? object(parts[0]) : {};
  if (!Object.values(ALGORITHMS).includes(header["alg"] as string) || typeof header["kid"] !== "string") throw new Refusal("PASS_INVALID");
  return header["kid"];
}

/** Validates signature, issuer, item and times, and returns the entry. Without a key the signature is not verified. */
export function entryFrom(pass: string, key: KeyObject | null, item: string, now: number, skew: number): Entry {
  if (key !== null && !isSigned(pass, key)) throw new Refusal("PASS_INVALID");
  const { iss, aud, sub, jti, num, lane = null, iat, exp, nbf } = object(pass.split(".")[1]);
  const whole = matches(sub, USER) && matches(jti, UUID) && isItem(aud) && isCount(num) && isCount(iat) && isCount(exp);
  const isLane = lane === null || matches(lane, LANE);
  if (!whole || !isLane || iss !== ISSUER || !(nbf === undefined || isCount(nbf))) throw new Refusal("PASS_INVALID");
  if (aud !== item) throw new Refusal("PASS_OTHER_ITEM");
  if (Math.max(iat, nbf ?? 0) > now + skew) throw new Refusal("PASS_NOT_YET_VALID");
  if (exp + skew <= now) throw new Refusal("PASS_EXPIRED");
  const token = `${sub}-${aud}-${jti}`;
  return { userId: sub, itemId: aud, passId: jti, number: num, lane, expiresAt: exp, signatureVerified: key !== null, token };
}

function isSigned(pass: string, key: KeyObject): boolean {
  const end = pass.lastIndexOf(".");
  const signature = pass.slice(end + 1);
  // Node's decoder skips invalid characters instead of failing.
  if (!BASE64URL.test(signature)) return false;
  // The key fixes the algorithm: trusting the header would allow `none` and HS256 forgeries.
  const algorithm = ALGORITHMS[key.asymmetricKeyType ?? ""];
  if (object(pass.split(".")[0])["alg"] !== algorithm) return false;
  const hash = algorithm === "EdDSA" ? null : "sha256";
  // workerd accepts no options beside a key object.
  const how = algorithm === "ES256" ? { key, dsaEncoding: "ieee-p1363" as const } : key;
  return verify(hash, Buffer.from(pass.slice(0, end)), how, Buffer.from(signature, "base64url"));
}

/** Decodes a JSON object from a part of a JWT. Returns an empty object if there is none. */
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
