// Where in a request the pass is, and how a browser keeps it.
//
// In this order: the header `daegi-pass`, the parameter `pass` of the address (an item's `entryUrl` brings people so), the
// cookie that the guard made of it, `Authorization: Bearer`. The last one is last because a service may use it for
// something else. Where both address and cookie carry one, `Guard.admit` decides.

import type { Entry } from "./claims.js";

/** The parts of a request that matter; `IncomingMessage` and everything made of it has them. */
export interface Carrier {
  url?: string | undefined;
  /** Where Express keeps the whole address below a mounted router. */
  originalUrl?: string | undefined;
  headers: Record<string, string | string[] | undefined>;
}

/** The first pass that a request brings for this item, or an empty text. */
export function findPass(request: Carrier, item: string): string {
  const { address, kept } = brought(request, item);
  return address || kept;
}

/** The pass in the address, and the one that the request brings without it; empty texts where there is none. */
export function brought({ url, originalUrl, headers }: Carrier, item: string): { address: string; kept: string } {
  const own = text(headers["daegi-pass"]);
  if (own) return { address: "", kept: own };
  const address = parameter(originalUrl ?? url ?? "");
  const kept = cookie(text(headers["cookie"]), item);
  return { address, kept: kept || (address ? "" : bearer(text(headers["authorization"]))) };
}

function text(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}

/** A pass is made of characters that need no escaping. */
function parameter(address: string): string {
  // Only the first question mark ends the path: a parameter may have one, too.
  const query = address.includes("?") ? address.slice(address.indexOf("?") + 1) : "";
  return query.split("&").find((pair) => pair.startsWith("pass="))?.slice("pass=".length) ?? "";
}

function cookie(header: string, item: string): string {
  const start = `${nameOfCookie(item)}=`;
  const pairs = header.split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(start))?.slice(start.length) ?? "";
}

function bearer(header: string): string {
  return /^bearer +(\S+)$/i.exec(header)?.[1] ?? "";
}

/** One for each item, since a person may be inside several. Ids are made of characters that names of cookies may have. */
function nameOfCookie(item: string): string {
  return `daegi-pass-${item}`;
}

/** Keeps a pass in the browser for as long as it is good, away from scripts and other sites. */
export function cookieOf(entry: Entry, pass: string, nowMs: number, https: boolean): string {
  const seconds = Math.max(0, entry.expiresAt - Math.floor(nowMs / 1000));
  const rules = `Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${https ? "; Secure" : ""}`;
  return `${nameOfCookie(entry.itemId)}=${pass}; ${rules}`;
}
