// The server's time. The operator's clock may be minutes off, so countdowns do not read it.

import { useEffect, useMemo, useState } from "preact/hooks";

/** A sample that lies back by more is a changed server clock, and by less a slow response. */
const MAX_DELAY_MS = 3_000;

/** Runs on the monotonic clock of the browser from the latest `at` of a response. */
export class ServerClock {
  #offset = Number.NEGATIVE_INFINITY;

  constructor(readonly monotonic: () => number = () => performance.now()) {}

  /** `at` is the server's time when it answered, so a late response never sets the clock back. */
  sync(at: string): void {
    const offset = Date.parse(at) - this.monotonic();
    if (offset > this.#offset || this.#offset - offset > MAX_DELAY_MS) this.#offset = offset;
  }

  /** Unix milliseconds. */
  now(): number {
    return this.monotonic() + this.#offset;
  }
}

/** Returns a clock that is set by `at` at every response. */
export function useServerClock(at: string): ServerClock {
  const clock = useMemo(() => new ServerClock(), []);
  useMemo(() => clock.sync(at), [at]);
  return clock;
}

/** Returns the server's time and renders again at each full second of it. */
export function useSeconds(clock: ServerClock): number {
  const [, render] = useState(0);
  useEffect(() => {
    let timer = 0;
    const wait = () => {
      timer = window.setTimeout(() => {
        render((n) => n + 1);
        wait();
      }, 1_005 - (clock.now() % 1000));
    };
    wait();
    return () => window.clearTimeout(timer);
  }, [clock]);
  return clock.now();
}
