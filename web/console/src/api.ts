// The part of the admin API that the console uses.

export const STATES = ["OPEN", "SCHEDULED", "LOBBY", "PAUSED", "SOLD_OUT", "CLOSED", "DISABLED", "RECOVERING", "HELD"] as const;
export type LineState = (typeof STATES)[number];

export interface LineView {
  itemId: string;
  itemName: string;
  lineState: LineState;
  waitingCount: number;
  enteredCount: number;
  remainCount: number;
  admittedPerSecond: number | null;
  etaSeconds: number | null;
}

export interface Scheduler {
  replica: string;
  leading: boolean;
  epoch: number | null;
  since: string | null;
  lastTickMillis: number | null;
}

export interface Consumer {
  replica: string;
  lag: Record<string, number | null>;
}

export interface RecentEvent {
  at: string;
  itemId: string;
  userId: string;
  reason: string | null;
}

export interface Overview {
  at: string;
  replica: string;
  tokenCountToMove: number;
  tickMs: number;
  outboxPending: number;
  storeMemory?: { usedBytes: number; limitBytes: number; full: boolean } | null;
  schedulers: Scheduler[];
  consumers: Consumer[];
  events: RecentEvent[];
  totals: { lines: number; open: number; waiting: number; entered: number; admittedPerSecond: number };
  matching: number;
  lines: LineView[];
}

/** A text, or one per language by its tag. */
export type PageText = string | Record<string, string>;

/** A link of the waiting page. */
export interface PageLink {
  url: string;
  label: PageText | null;
}

/** The states in which the waiting page shows a link; `home` is for those without one of their own. */
export const LINKS = ["home", "completed", "soldOut", "closed"] as const;

/** The branding of an item's waiting page. */
export interface Branding {
  title: PageText | null;
  message: PageText | null;
  /** Absent in the record of an older server, as the fields below. */
  links?: Record<(typeof LINKS)[number], PageLink | null>;
  accent: string | null;
  logo: string | null;
}

export type Order = "arrival" | "draw";

/** When a line opens and closes, and the order of people who come before. Times are RFC 3339. */
export interface Opening {
  /** Null: an operator opens the line. */
  opensAt: string | null;
  /** Null: the lobby is open from the moment the opening is set. */
  lobbyAt: string | null;
  /** Null: the line does not close by itself. */
  closesAt: string | null;
  order: Order;
  /** A public random number that is mixed into the draw. Without a round the server chooses one: when the opening is planned, or when an operator opens the line. */
  beacon: { kind: "drand"; round: number | null } | null;
}

/** The draw of a line whose order is `draw`. */
export interface Draw {
  state: "COMMITTED" | "DRAWN";
  /** Hex. */
  commitment: string;
  /** Known once the draw has begun. */
  cohortSize: number | null;
  /** Absent in responses of a replica of an older release. */
  beacon?: DrawBeacon | null;
}

/** The public random number of a draw. */
export interface DrawBeacon {
  round: number;
  /** RFC 3339. */
  publishedAt: string;
  /** Hex; null until it is known. */
  signature: string | null;
}

/** A lane besides the standard one. */
export interface LanePolicy {
  name: string;
  /** The share of the rate in percent; the standard lane has what is left of 100. 0 for a lane that is served first. */
  weight: number;
  first: boolean;
}

/** How the rate of a line is chosen. */
export type Pace = "fixed" | { adaptive: AdaptivePace };

/** A rate that follows the origin, in users per minute. */
export interface AdaptivePace {
  minPerMinute: number;
  maxPerMinute: number;
  targetP95Ms: number;
  maxErrorPercent: number;
  healthUrl: string | null;
  prometheus: object | null;
}

/** The state of an adaptive pace. */
export interface PaceState {
  perMinute: number;
  reason: string;
  p95Ms: number | null;
  errorPercent: number;
}

export interface Policy {
  mode: string;
  tokensPerTick: number | null;
  maxActive: number | null;
  maxWaiting?: number | null;
  admitUpToStock: boolean;
  passTtlSeconds: number;
  graceSeconds: number;
  missedKeepSeconds: number;
  onRejoin: string;
  /** Absent in responses of a replica of an older release. */
  challenge?: string;
  /** As `challenge`. */
  pace?: Pace;
  entryUrl: string | null;
  page: Branding;
  /** As `challenge`. */
  opening?: Opening | null;
  /** As `challenge`. */
  lanes?: LanePolicy[];
}

export interface Item {
  itemId: string;
  itemName: string;
  remainCount: number;
  waitingQueueEnabled: boolean;
  paused: boolean;
  lineState: LineState;
  revision: number;
  policy: Policy;
  /** When the line of the opening opened; null before. */
  openedAt?: string | null;
  draw?: Draw | null;
}

/** Figures that are sampled over time. All but waiting and entered are counters. */
export const FIGURES = ["waiting", "entered", "frontier", "tail", "joined", "admitted", "completed", "expired", "left", "abandoned"] as const;
export type Figures = Record<(typeof FIGURES)[number], number>;

/** The figures of a lane. */
export interface LaneFigures extends LanePolicy {
  waiting: number;
  returning: number;
  missed: number;
  entered: number;
  admitted: number;
}

/** Invitation codes as they were made. The server does not store them. */
export interface Invitations {
  lane: string;
  usesEach: number;
  /** RFC 3339. */
  expiresAt: string;
  codes: string[];
}

/** How many tickets have signals of a program. */
export type SignalCounts = Record<"automated" | "source" | "headers" | "earlyPolls" | "noPage" | "honeypot" | "uncounted", number>;

export interface LineDetail {
  at: string;
  item: Item;
  people: Figures & { returning: number; missed: number };
  admittedPerSecond: number | null;
  /** Null for a fixed pace. Absent in responses of a replica of an older release. */
  pace?: PaceState | null;
  etaSeconds: number | null;
  /** Absent in responses of a replica of an older release. */
  signals?: SignalCounts;
  /** Sampled tickets by whether they were admitted within the range they were shown at the join. Absent in responses of a replica of an older release. */
  estimates?: { within: number; earlier: number; later: number } | null;
  events: RecentEvent[];
  /** The lanes, the standard lane first; empty without lanes. Absent in responses of a replica of an older release. */
  lanes?: LaneFigures[];
}

export type LineHistory = Record<(typeof FIGURES)[number] | "at", number[]> & { replica: string };

/** A sale to simulate. */
export interface Sale {
  arrivals: { total: number; minutes: number; shape: string };
  stock: number;
  policy: Partial<Policy>;
  visitors: { noShowPercent: number; buyPercent: number; checkoutSeconds: number };
}

/** What a change would do to those who wait now. */
export interface LineForecast {
  waiting: number;
  /** RFC 3339; null if no ticket is admitted. */
  clearsAt: string | null;
  withoutTurn: number;
}

/** What would happen in a sale. Times in seconds after the first arrival. */
export interface Forecast {
  admitted: number;
  bought: number;
  expired: number;
  abandoned: number;
  withoutTurn: number;
  unsold: number;
  soldOutSeconds: number | null;
  clearedSeconds: number | null;
  waits: { p10: number; p50: number; p90: number; p99: number; max: number } | null;
  perMinute: Record<"joined" | "admitted" | "bought" | "waiting" | "entered", number[]>;
  estimates: { looks: number; later: number };
}

export interface Change {
  at: string;
  operator: string | null;
  action: string;
  itemId: string | null;
  from: unknown;
  to: unknown;
}

/** A rule of the block and allow list. */
export interface AccessRule {
  id: string;
  kind: "block" | "allow";
  userId: string | null;
  network: string | null;
  userAgent: string | null;
  itemId: string | null;
  reason: string;
  publicReason: string | null;
  /** RFC 3339. */
  expiresAt: string | null;
  author: string | null;
  origin: "api" | "file";
}

/** One page of the list. */
export interface AccessPage {
  total: number;
  max: number;
  matching: number;
  contactUrl: string | null;
  rules: AccessRule[];
}

/** Returns what a rule matches. */
export const subjectOf = ({ userId, network, userAgent }: AccessRule): string => userId ?? network ?? userAgent ?? "";

/** An error response of the server. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const API_ROOT = "/internal/admin/v1";

export class Api {
  constructor(readonly token: string, readonly operator: string) {}

  async get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.#call("GET", path, undefined, signal);
  }

  async send<T = unknown>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, timeoutMs?: number): Promise<T> {
    return this.#call(method, path, body, undefined, timeoutMs);
  }

  /** Returns a response that is not JSON. */
  async text(path: string): Promise<string> {
    return (await this.#request("GET", path)).text();
  }

  async #call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, timeoutMs?: number): Promise<T> {
    const response = await this.#request(method, path, body, signal, timeoutMs);
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  async #request(method: string, path: string, body?: unknown, signal?: AbortSignal, timeoutMs = 5_000): Promise<Response> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.token}` };
    if (this.operator) headers["x-operator"] = encodeURIComponent(this.operator);
    if (body !== undefined) headers["content-type"] = "application/json";
    // Distinguishes a hanging server from a slow one.
    const timeout = AbortSignal.timeout(timeoutMs);
    const response = await fetch(`${API_ROOT}${path}`, {
      method,
      headers,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Refusal(response.status, await reason(response));
    return response;
  }
}

async function reason(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => ({}))) as { detail?: string };
  return problem.detail ?? `${response.status} ${response.statusText}`;
}

/** The public draw record of a line, a path of the public listener. */
export const drawPath = (id: string): string => `/api/v1/item/${encodeURIComponent(id)}/waiting-queue/draw`;

export const linePath = (id: string, call = ""): string => `/waiting-item/${encodeURIComponent(id)}${call && `/${call}`}`;
