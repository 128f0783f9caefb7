import { sleep } from "./sleep.js";

/** Returns whether the page is hidden. False outside of browsers. */
export function isHidden(): boolean {
  return page()?.visibilityState === "hidden";
}

function page(): Document | undefined {
  return globalThis.document;
}

/** Resolves after `ms`, or earlier when the signal is aborted or a hidden page becomes visible. */
export async function sleepUntilVisible(ms: number, signal: AbortSignal): Promise<void> {
  const early = new AbortController();
  const end = () => early.abort();
  const onChange = () => {
    if (!isHidden()) end();
  };
  page()?.addEventListener("visibilitychange", onChange);
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  await sleep(ms, early.signal);
  page()?.removeEventListener("visibilitychange", onChange);
  signal.removeEventListener("abort", end);
}
