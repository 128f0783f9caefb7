// Asking again and again.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Api, Refusal } from "./api.js";

export interface Polled<T> {
  data: T | null;
  /** The server does not answer; `data` may be old. */
  lost: boolean;
  /** There is no such thing. */
  missing: boolean;
  /** Asks at once, after a change. */
  again: () => void;
}

interface Watch {
  api: Api;
  /** The token does not count any more. */
  denied: () => void;
}

/** Asks every second after the last answer, and rarely while nobody looks. */
export function usePoll<T>({ api, denied }: Watch, path: string, everyMs = 1000): Polled<T> {
  const [state, setState] = useState({ path, data: null as T | null, lost: false, missing: false });
  const poke = useRef(() => {});
  useEffect(() => {
    const ended = new AbortController();
    let timer = 0;
    let wakes = 0;
    const ask = async () => {
      timer = 0;
      const woken = wakes;
      try {
        const data = await api.get<T>(path, ended.signal);
        if (ended.signal.aborted) return;
        setState({ path, data, lost: false, missing: false });
      } catch (error) {
        if (ended.signal.aborted) return;
        if (error instanceof Refusal && error.status === 401) return denied();
        const missing = error instanceof Refusal && error.status === 404;
        setState((before) => ({ ...before, path, missing, lost: !missing }));
      }
      if (ended.signal.aborted) return;
      const pause = wakes !== woken ? 0 : document.hidden ? 10 * everyMs : everyMs;
      timer = window.setTimeout(() => void ask(), pause);
    };
    poke.current = () => {
      wakes++;
      if (!timer) return;
      window.clearTimeout(timer);
      void ask();
    };
    const seen = () => !document.hidden && poke.current();
    document.addEventListener("visibilitychange", seen);
    void ask();
    return () => {
      ended.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [api, path, everyMs]);
  // Another path than the one that was asked for: nothing is known of it yet.
  const known = state.path.split("?")[0] === path.split("?")[0];
  return { ...(known ? state : { data: null, lost: state.lost, missing: false }), again: () => poke.current() };
}
