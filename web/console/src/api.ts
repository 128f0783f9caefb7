// The admin API, as far as the console uses it.

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

export interface LineEvent {
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
  events: LineEvent[];
  totals: { lines: number; open: number; waiting: number; entered: number; admittedPerSecond: number };
  matching: number;
  lines: LineView[];
}

/** What the waiting page shows of an item's own. */
export interface Look {
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
  page: Look;
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

/** Figures that are sampled over time; but for waiting and entered all of them only grow. */
export const FIGURES = ["waiting", "entered", "frontier", "tail", "joined", "admitted", "completed", "expired", "left", "abandoned"] as const;
export type Figures = Record<(typeof FIGURES)[number], number>;

export interface LineNow {
  at: string;
  item: Item;
  people: Figures & { returning: number; missed: number };
  admittedPerSecond: number | null;
  etaSeconds: number | null;
  events: LineEvent[];
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

/** What the server said instead of doing it. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const HERE = "/internal/admin/v1";

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
    // A server that hangs must be told from one that is slow.
    const patience = AbortSignal.timeout(5_000);
    const answer = await fetch(`${HERE}${path}`, {
      method,
      headers,
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Refusal(answer.status, await reason(answer));
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }
}

async function reason(answer: Response): Promise<string> {
  const problem = (await answer.json().catch(() => ({}))) as { detail?: string };
  return problem.detail ?? `${answer.status} ${answer.statusText}`;
}

export const linePath = (id: string, call = ""): string => `/waiting-item/${encodeURIComponent(id)}${call && `/${call}`}`;
