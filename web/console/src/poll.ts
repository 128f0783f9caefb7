// Polling of the admin API.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Api, Refusal } from "./api.js";

export interface Polled<T> {
  data: T | null;
  /** The server is unreachable; `data` may be old. */
  lost: boolean;
  /** The resource does not exist. */
  missing: boolean;
  /** Polls immediately, for example after a change. */
  again: () => void;
}

interface PollContext {
  api: Api;
  /** Called when the token is rejected. */
  denied: () => void;
}

/** Polls every second, and every 10 s while the page is hidden. */
export function usePoll<T>({ api, denied }: PollContext, path: string, everyMs = 1000): Polled<T> {
  const [state, setState] = useState({ path, data: null as T | null, lost: false, missing: false });
  const refreshNow = useRef(() => {});
  useEffect(() => {
    const ended = new AbortController();
    let timer = 0;
    let wakes = 0;
    const poll = async () => {
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
      const delay = wakes !== woken ? 0 : document.hidden ? 10 * everyMs : everyMs;
      timer = window.setTimeout(() => void poll(), delay);
    };
    refreshNow.current = () => {
      wakes++;
      if (!timer) return;
      window.clearTimeout(timer);
      void poll();
    };
    const onVisible = () => !document.hidden && refreshNow.current();
    document.addEventListener("visibilitychange", onVisible);
    void poll();
    return () => {
      ended.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [api, path, everyMs]);
  // The data belongs to another path: nothing is loaded for this one yet.
  const known = state.path.split("?")[0] === path.split("?")[0];
  return { ...(known ? state : { data: null, lost: state.lost, missing: false }), again: () => refreshNow.current() };
}
