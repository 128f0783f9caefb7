/** What a guard is told. Only `room` is needed. */
export interface GuardOptions {
  /** daegi's public address as this service reaches it: its keys are there. */
  room: string;
  /** daegi's public address as people reach it: the waiting page is there. `room` if it is the same. */
  pages?: string;
  /** daegi's internal address. Needed to complete entries and to check online. */
  internal?: string;
  /** Also asks daegi whether the entry was completed, given back or taken away since. */
  online?: boolean;
  /**
   * What to do when daegi cannot be asked for what is needed: its keys, before they were had once, or whether a pass was
   * revoked. `refuse` (the default) answers 503; `letIn` lets in whoever brings a pass that could be one.
   */
  whenAway?: "refuse" | "letIn";
  /** By how much the clocks of daegi and this service may differ: 5. */
  clockSkewSeconds?: number;
  /** How old the keys may be before they are fetched anew: 300. */
  refreshSeconds?: number;
  /** The least time between two questions for keys, whatever passes people bring: 5. */
  pauseSeconds?: number;
  /** How long daegi may take to answer: 2000. */
  timeoutMs?: number;
  /** The time in milliseconds since 1970. */
  now?: () => number;
  /** Hears of daegi not answering; by default it is a warning on the console. What it throws changes nothing for people. */
  onTrouble?: (error: unknown) => void;
}

/** The options with every default. */
export interface Setup extends Required<Omit<GuardOptions, "internal">> {
  internal: string | null;
}

export function complete(options: GuardOptions): Setup {
  if (options.online && options.internal === undefined) throw new Error("checking online needs daegi's internal address");
  return {
    online: false,
    whenAway: "refuse",
    clockSkewSeconds: 5,
    refreshSeconds: 300,
    pauseSeconds: 5,
    timeoutMs: 2000,
    now: Date.now,
    ...options,
    onTrouble: harmless(options.onTrouble ?? ((error) => console.warn("daegi cannot be asked:", error))),
    room: trimmed(options.room),
    pages: trimmed(options.pages ?? options.room),
    internal: options.internal === undefined ? null : trimmed(options.internal),
  };
}

/** A listener that fails, now or later, must not turn people away or end the process. */
function harmless(listener: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    (async () => listener(error))().catch((failure: unknown) => console.warn("onTrouble failed:", failure));
  };
}

function trimmed(address: string): string {
  return address.replace(/\/+$/, "");
}
