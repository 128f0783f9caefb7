// Changing something: what every control shares.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { say } from "../words.js";

/** Does something, then shows `done`, which says what happened, or why it failed. `undo` takes it back. */
export type Act = (done: string, work: () => Promise<void>, undo?: Undo) => Promise<boolean>;

/** What a toast offers to take back. */
export interface Undo {
  done: string;
  work: () => Promise<void>;
}

/** A text that is said aloud and shown for a moment. */
export interface Said {
  text: string;
  failed: boolean;
  undo?: () => void;
}

const TOAST_MS = 5_000;
/** Long enough to read a reason, or to decide on an undo. */
const LONG_TOAST_MS = 12_000;

export function useActs(again: () => void): [Act, Said | null] {
  const [said, setSaid] = useState<Said | null>(null);
  useEffect(() => {
    if (!said) return;
    const timer = window.setTimeout(() => setSaid(null), said.failed || said.undo ? LONG_TOAST_MS : TOAST_MS);
    return () => window.clearTimeout(timer);
  }, [said]);
  const act: Act = async (done, work, undo) => {
    try {
      await work();
      setSaid({ text: done, failed: false, ...(undo && { undo: () => void act(undo.done, undo.work) }) });
      return true;
    } catch (error) {
      setSaid({ text: error instanceof Error ? error.message : String(error), failed: true });
      return false;
    } finally {
      again();
    }
  };
  return [act, said];
}

export function Toast({ said }: { said: Said | null }) {
  return (
    <p role="status" class={`toast ${said?.failed ? "failed" : ""}`} hidden={!said}>
      {said?.text}
      {said?.undo && (
        <button type="button" onClick={said.undo}>
          {say("undo")}
        </button>
      )}
    </p>
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  /** What is true now; it is shown until somebody types. */
  value: number | null;
  /** Whether it may be empty, which is null. */
  optional?: boolean;
  min?: number;
  max?: number;
  set: (value: number | null) => Promise<boolean>;
}

/** A number with a button that sets it. What is typed is not lost when the truth changes, nor while it is set. */
export function NumberControl({ label, hint, value, optional = false, min = 0, max, set }: FieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  const shown = value === null ? "" : String(value);
  return (
    <form
      class="control"
      onSubmit={(event) => {
        event.preventDefault();
        const text = typed ?? shown;
        void set(text === "" ? null : Number(text)).then((done) => done && setTyped((now) => (now === typed ? null : now)));
      }}
    >
      <label for={id}>{label}</label>
      <div class="row">
        <input
          id={id}
          type="number"
          inputMode="numeric"
          min={min}
          max={max}
          step={1}
          required={!optional}
          aria-describedby={hint && `${id}-hint`}
          value={typed ?? shown}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit" class={typed !== null && typed !== shown ? "ready" : ""}>
          {say("set")}
        </button>
      </div>
      {hint && (
        <small id={`${id}-hint`}>{hint}</small>
      )}
    </form>
  );
}

interface DialogProps {
  title: string;
  close: () => void;
  children: ComponentChildren;
}

/** A dialog that is there while it is drawn. */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={close}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
