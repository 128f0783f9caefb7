// Form input that is not saved yet.

import { useState } from "preact/hooks";

export function useDraft<T extends object>() {
  const [typed, setTyped] = useState<Partial<T>>({});
  return {
    typed,
    changed: Object.keys(typed).length > 0,
    change: (changes: Partial<T>) => setTyped((before) => ({ ...before, ...changes })),
    /** What was sent is done with. What was typed meanwhile is not. */
    saved: () => setTyped((now) => differing(now, typed)),
    clear: () => setTyped({}),
  };
}

function differing<T extends object>(now: Partial<T>, sent: Partial<T>): Partial<T> {
  const left = Object.entries(now).filter(([name, value]) => sent[name as keyof T] !== value);
  return Object.fromEntries(left) as Partial<T>;
}
