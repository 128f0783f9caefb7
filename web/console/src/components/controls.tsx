// Shared parts of all controls.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { t } from "../i18n.js";

/** Runs an action, then shows `done` or the error. `undo` reverts it. */
export type Action = <T>(done: string | ((result: T) => string), work: () => Promise<T>, undo?: Undo) => Promise<boolean>;

/** How a toast reverts an action. */
export interface Undo {
  done: string;
  work: () => Promise<unknown>;
}

/** A message that is announced and shown for some seconds. */
export interface ToastMessage {
  text: string;
  failed: boolean;
  undo?: () => void;
}

const TOAST_MS = 5_000;
/** For errors, and for actions that can be undone. */
const LONG_TOAST_MS = 12_000;

export function useActions(again: () => void): [Action, ToastMessage | null] {
  const [message, setMessage] = useState<ToastMessage | null>(null);
  useEffect(() => {
    if (!message) return;
    const timer = window.setTimeout(() => setMessage(null), message.failed || message.undo ? LONG_TOAST_MS : TOAST_MS);
    return () => window.clearTimeout(timer);
  }, [message]);
  const act: Action = async (done, work, undo) => {
    try {
      const result = await work();
      setMessage({ text: typeof done === "string" ? done : done(result), failed: false, ...(undo && { undo: () => void act(undo.done, undo.work) }) });
      return true;
    } catch (error) {
      setMessage({ text: error instanceof Error ? error.message : String(error), failed: true });
      return false;
    } finally {
      again();
    }
  };
  return [act, message];
}

export function Toast({ message }: { message: ToastMessage | null }) {
  return (
    <p role="status" class={`toast ${message?.failed ? "failed" : ""}`} hidden={!message}>
      {message?.text}
      {message?.undo && (
        <button type="button" onClick={message.undo}>
          {t("undo")}
        </button>
      )}
    </p>
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  /** The current value; shown until the operator types. */
  value: number | null;
  /** Whether it may be empty (null). */
  optional?: boolean;
  min?: number;
  max?: number;
  set: (value: number | null) => Promise<boolean>;
  /** Says what a typed value would do. */
  forecast?: (value: number | null) => Promise<string>;
}

/** A number with a button that sets it. Typed text survives updates of the value. */
export function NumberControl({ label, hint, value, optional = false, min = 0, max, set, forecast }: FieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  const shown = value === null ? "" : String(value);
  const coming = useForecast(typed === shown ? null : typed, forecast);
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
          {t("set")}
        </button>
      </div>
      {hint && (
        <small id={`${id}-hint`}>{hint}</small>
      )}
      {forecast && (
        <small class="forecast" role="status">
          {coming}
        </small>
      )}
    </form>
  );
}

/** How long a typed value stands still before its forecast is loaded. */
const TYPING_MS = 400;

/** Returns what a typed value would do; empty while nothing is typed, and if that is unknown. */
function useForecast(typed: string | null, forecast: FieldProps["forecast"]): string {
  const [text, setText] = useState("");
  useEffect(() => {
    setText("");
    if (typed === null || !forecast) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      const loaded = forecast(typed === "" ? null : Number(typed));
      void loaded.then(
        (found) => isCurrent && setText(found),
        () => {},
      );
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [typed]);
  return text;
}

interface DialogProps {
  title: string;
  close: () => void;
  wide?: boolean;
  /** Called when the Escape key is pressed, instead of closing. */
  escape?: (() => void) | undefined;
  children: ComponentChildren;
}

/** A modal dialog, open while it is rendered. */
export function Dialog({ title, close, wide = false, escape, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog
      ref={element}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={(event) => {
        if (!escape) return;
        event.preventDefault();
        escape();
      }}
      onClose={close}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
