// The part of the admin API that the console uses.

export type LineState = "OPEN" | "PAUSED" | "SOLD_OUT" | "DISABLED" | "RECOVERING" | "HELD";
export const STATES: LineState[] = ["OPEN", "PAUSED", "SOLD_OUT", "DISABLED", "RECOVERING", "HELD"];

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

/** The branding of an item's waiting page. */
export interface Branding {
  title: string | null;
  message: string | null;
  accent: string | null;
  logo: string | null;
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
  entryUrl: string | null;
  page: Branding;
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
}

/** Figures that are sampled over time. All but waiting and entered are counters. */
export const FIGURES = ["waiting", "entered", "frontier", "tail", "joined", "admitted", "completed", "expired", "left", "abandoned"] as const;
export type Figures = Record<(typeof FIGURES)[number], number>;

export interface LineDetail {
  at: string;
  item: Item;
  people: Figures & { returning: number; missed: number };
  admittedPerSecond: number | null;
  etaSeconds: number | null;
  events: RecentEvent[];
}

export type LineHistory = Record<(typeof FIGURES)[number] | "at", number[]> & { replica: string };

export interface Change {
  at: string;
  operator: string | null;
  action: string;
  itemId: string | null;
  from: unknown;
  to: unknown;
}

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

  async send(method: "POST" | "PUT" | "PATCH", path: string, body?: unknown): Promise<void> {
    await this.#call(method, path, body);
  }

  async #call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.token}` };
    if (this.operator) headers["x-operator"] = encodeURIComponent(this.operator);
    if (body !== undefined) headers["content-type"] = "application/json";
    // Distinguishes a hanging server from a slow one.
    const timeout = AbortSignal.timeout(5_000);
    const response = await fetch(`${API_ROOT}${path}`, {
      method,
      headers,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Refusal(response.status, await reason(response));
    return (response.status === 204 ? undefined : await response.json()) as T;
  }
}

async function reason(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => ({}))) as { detail?: string };
  return problem.detail ?? `${response.status} ${response.statusText}`;
}

export const linePath = (id: string, call = ""): string => `/waiting-item/${encodeURIComponent(id)}${call && `/${call}`}`;
