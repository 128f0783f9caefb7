/** Resolves after `ms`, or earlier when the signal is aborted. Callers check the signal afterwards. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

const RECONNECT = { firstMs: 500, longestMs: 10_000 };

/** Returns the delay after the n-th consecutive failure: exponential, with 50 % jitter so that clients do not retry together. */
export function backoff(failures: number, random: () => number = Math.random, { firstMs, longestMs } = RECONNECT): number {
  const most = Math.min(longestMs, firstMs * 2 ** Math.min(failures, 10));
  return most / 2 + (most / 2) * random();
}
