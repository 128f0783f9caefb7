// Finds the pass of a request and writes the cookie that stores it.
//
// Sources, in this order: the header `daegi-pass`, the query parameter `pass` (as in an item's `entryUrl`), the guard's
// cookie, `Authorization: Bearer`. The bearer token is last because a service may use it for its own authentication. If
// both URL and cookie carry a pass, `Guard.authorize` decides.

import type { Entry } from "./claims.js";

/** The parts of a request that the guard reads. `IncomingMessage` and its subclasses have them. */
export interface RequestParts {
  url?: string | undefined;
  /** The full URL that Express stores for handlers of a mounted router. */
  originalUrl?: string | undefined;
  headers: Record<string, string | string[] | undefined>;
}

/** Returns the first pass of a request for this item, or an empty string. */
export function findPass(request: RequestParts, item: string): string {
  const { inUrl, stored } = findPasses(request, item);
  return inUrl || stored;
}

/** Returns the pass in the URL and the one in cookie or headers; empty strings if there is none. */
export function findPasses({ url, originalUrl, headers }: RequestParts, item: string): { inUrl: string; stored: string } {
  const header = text(headers["daegi-pass"]);
  if (header) return { inUrl: "", stored: header };
  const inUrl = fromQuery(originalUrl ?? url ?? "");
  const stored = fromCookie(text(headers["cookie"]), item);
  return { inUrl, stored: stored || (inUrl ? "" : fromBearer(text(headers["authorization"]))) };
}

function text(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}

/** A pass contains no characters that need URL escaping. */
function fromQuery(url: string): string {
  // Only the first question mark ends the path: a parameter may contain one, too.
  const query = url.includes("?") ? url.slice(url.indexOf("?") + 1) : "";
  return query.split("&").find((pair) => pair.startsWith("pass="))?.slice("pass=".length) ?? "";
}

function fromCookie(header: string, item: string): string {
  const start = `${cookieName(item)}=`;
  const pairs = header.split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(start))?.slice(start.length) ?? "";
}

function fromBearer(header: string): string {
  return /^bearer +(\S+)$/i.exec(header)?.[1] ?? "";
}

/** One cookie per item, because a user may have entries of several items. Item ids are valid in cookie names. */
function cookieName(item: string): string {
  return `daegi-pass-${item}`;
}

/** Stores a pass in the browser until it expires, unreadable to scripts and other sites. */
export function passCookie(entry: Entry, pass: string, nowMs: number, https: boolean): string {
  const seconds = Math.max(0, entry.expiresAt - Math.floor(nowMs / 1000));
  const rules = `Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${https ? "; Secure" : ""}`;
  return `${cookieName(entry.itemId)}=${pass}; ${rules}`;
}
