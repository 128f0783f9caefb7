/** Waits, but not after the signal. Resolves in both cases: whoever waits looks at the signal. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
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

/** How long to wait after the n-th failure in a row: growing, and spread so that no crowd forms. */
export function backoff(failures: number, random: () => number = Math.random, { firstMs, longestMs } = RECONNECT): number {
  const most = Math.min(longestMs, firstMs * 2 ** Math.min(failures, 10));
  return most / 2 + (most / 2) * random();
}
