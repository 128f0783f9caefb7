// A field with a hint, which an error replaces.

import type { ComponentChildren } from "preact";
import type { Key } from "../i18n.js";
import { Labelled } from "./labelled.js";

interface Described {
  "aria-describedby": string;
  "aria-invalid": boolean;
}

interface FieldProps {
  id: string;
  label: Key;
  hint?: string;
  error: string | undefined;
  children: (described: Described) => ComponentChildren;
}

export function Field({ id, label, hint = "", error, children }: FieldProps) {
  return (
    <Labelled id={id} label={label}>
      {children({ "aria-describedby": `${id}-hint`, "aria-invalid": Boolean(error) })}
      <small key={error ? "error" : "hint"} id={`${id}-hint`} class={error ? "grave" : ""} role={error ? "alert" : undefined}>
        {error ?? hint}
      </small>
    </Labelled>
  );
}
