/** Configuration of a guard. Only `publicUrl` is required. */
export interface GuardOptions {
  /** daegi's public URL as this service reaches it. The guard fetches the keys from it. */
  publicUrl: string;
  /** daegi's public URL as browsers reach it. Redirects to the waiting page use it. Default: `publicUrl`. */
  browserUrl?: string;
  /** daegi's internal URL. Required to complete entries and to check online. */
  internalUrl?: string;
  /** Also checks with daegi, for each request, that the entry has not ended. */
  online?: boolean;
  /**
   * What to do while daegi is unreachable and needed: for the keys, until the first successful fetch, or for an online
   * check. `failClosed` (the default) responds with 503; `failOpen` accepts any well-formed, unexpired pass.
   */
  onUnavailable?: "failClosed" | "failOpen";
  /** Tolerated difference between the clocks of daegi and this service. Default: 5. */
  clockSkewSeconds?: number;
  /** Age at which keys are fetched again. Default: 300. */
  keyTtlSeconds?: number;
  /** Minimum time between two fetches of keys, whatever key ids passes name. Default: 5. */
  minFetchIntervalSeconds?: number;
  /** Timeout of one call to daegi. Default: 2000. */
  timeoutMs?: number;
  /** Returns the time in milliseconds since the Unix epoch. */
  now?: () => number;
  /** Called when a call to daegi fails. Default: a warning on the console. Errors it throws are logged and ignored. */
  onError?: (error: unknown) => void;
}

/** The options with all defaults. */
export interface ResolvedOptions extends Required<Omit<GuardOptions, "internalUrl">> {
  internalUrl: string | null;
}

export function withDefaults(options: GuardOptions): ResolvedOptions {
  if (options.online && options.internalUrl === undefined) throw new Error("internalUrl is not configured; it is required to check online");
  return {
    online: false,
    onUnavailable: "failClosed",
    clockSkewSeconds: 5,
    keyTtlSeconds: 300,
    minFetchIntervalSeconds: 5,
    timeoutMs: 2000,
    now: Date.now,
    ...options,
    onError: ignoreErrors(options.onError ?? ((error) => console.warn("call to daegi failed:", error))),
    publicUrl: trimSlashes(options.publicUrl),
    browserUrl: trimSlashes(options.browserUrl ?? options.publicUrl),
    internalUrl: options.internalUrl === undefined ? null : trimSlashes(options.internalUrl),
  };
}

/** Wraps a listener whose failure, synchronous or not, must neither refuse requests nor end the process. */
function ignoreErrors(listener: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    (async () => listener(error))().catch((failure: unknown) => console.warn("onError failed:", failure));
  };
}

function trimSlashes(url: string): string {
  return url.replace(/\/+$/, "");
}
