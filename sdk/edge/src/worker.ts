// The gate as a Cloudflare Worker, in front of an unchanged application: verifies passes at the edge with daegi's published keys,
// sends browsers without one to the waiting page and back, and names the ticket in headers of the request to the origin.
//
// Variables: DAEGI_PUBLIC_URL, the waiting room; DAEGI_RULES, such as [{"path":"/checkout/","item":"concert"}]. Needs the
// compatibility flag nodejs_compat. The worker runs on a route of the site, so that `fetch` reaches the origin.

import { Guard, Refusal, toResponse, type Entry } from "../../js/src/guard.js";
import { passCookie } from "../../js/src/guard/pass-source.js";

export interface Env {
  DAEGI_PUBLIC_URL: string;
  DAEGI_RULES: string;
}

/** Paths that begin with `path` are guarded by the line of `item`. */
interface Rule {
  path: string;
  item: string;
}

const NAMED = ["daegi-user", "daegi-number", "daegi-lane"];
/** Longest path to which a visitor returns, as in the gate of the api. */
const MAX_RETURN = 2_048;

/** One guard per isolate, because it caches the keys. */
let guard: Guard | undefined;

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const path = plainPath(url.pathname);
    // The origin might read it as another path than the rules do.
    if (path === null) return new Response("ambiguous path", { status: 400 });
    const rule = (JSON.parse(env.DAEGI_RULES) as Rule[]).find((one) => path.startsWith(one.path));
    const forwarded = new Request(request);
    for (const name of NAMED) forwarded.headers.delete(name);
    if (rule === undefined) return fetch(forwarded);

    guard ??= new Guard({ publicUrl: env.DAEGI_PUBLIC_URL });
    try {
      const { entry, keep } = await guard.authorize(rule.item, { url: url.pathname + url.search, headers: Object.fromEntries(request.headers) });
      const cleaned = withoutPass(url);
      if (cleaned !== null && isNavigation(request)) return moved(cleaned, keep, entry, url.protocol === "https:");
      forwarded.headers.set("daegi-user", entry.userId);
      forwarded.headers.set("daegi-number", String(entry.number));
      forwarded.headers.set("daegi-lane", entry.lane ?? "standard");
      return fetch(forwarded);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, headers, body } = toResponse(error, request.headers.get("accept") ?? "", waitingPage(guard, rule.item, request, url));
      return new Response(body || null, { status, headers });
    }
  },
};

/** Returns the decoded path, or `null` if an origin might read it differently. */
function plainPath(pathname: string): string | null {
  try {
    const decoded = decodeURIComponent(pathname);
    return /\/\/|\/\.\.?(\/|$)|\\|%|\0/.test(decoded) ? null : decoded;
  } catch {
    return null;
  }
}

const isPass = (pair: string): boolean => /^pass=[^.]*\.[^.]*\.[^.]*$/.test(pair);

/** Returns the path and query without a pass, or `null` if the query has none. */
function withoutPass({ pathname, search }: URL): string | null {
  const pairs = search.slice(1).split("&");
  if (!pairs.some(isPass)) return null;
  const rest = pairs.filter((pair) => !isPass(pair)).join("&");
  return rest ? `${pathname}?${rest}` : pathname;
}

function isRead({ method }: Request): boolean {
  return method === "GET" || method === "HEAD";
}

function isNavigation(request: Request): boolean {
  return isRead(request) && (request.headers.get("accept") ?? "").includes("text/html");
}

/** Redirects a browser to the address without the pass, which its cookie keeps. */
function moved(address: string, keep: string | null, entry: Entry, isHttps: boolean): Response {
  const headers = new Headers({ location: address, "cache-control": "no-store" });
  if (keep !== null) headers.append("set-cookie", passCookie(entry, keep, Date.now(), isHttps));
  return new Response(null, { status: 302, headers });
}

/** Returns the address of the waiting page, with the way back for requests that may be repeated. */
function waitingPage(guard: Guard, item: string, request: Request, url: URL): string {
  const page = guard.waitingPage(item);
  const back = withoutPass(url) ?? url.pathname + url.search;
  return isRead(request) && back !== "/" && back.length <= MAX_RETURN ? `${page}?return=${encodeURIComponent(back)}` : page;
}
