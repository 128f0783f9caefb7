import { pause } from "./pause.js";

/** Whether nobody looks. Outside of browsers somebody always does. */
export function isHidden(): boolean {
  return page()?.visibilityState === "hidden";
}

function page(): Document | undefined {
  return globalThis.document;
}

/** Waits, but not after the signal, and not after a hidden page is shown again. */
export async function pauseUnlessShown(ms: number, signal: AbortSignal): Promise<void> {
  const early = new AbortController();
  const end = () => early.abort();
  const look = () => {
    if (!isHidden()) end();
  };
  page()?.addEventListener("visibilitychange", look);
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  await pause(ms, early.signal);
  page()?.removeEventListener("visibilitychange", look);
  signal.removeEventListener("abort", end);
}
