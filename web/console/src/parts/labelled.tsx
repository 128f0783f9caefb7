// A field with its name above it.

import type { ComponentChildren } from "preact";
import { type Key, say } from "../words.js";

interface LabelledProps {
  id: string;
  label: Key;
  wide?: boolean;
  children: ComponentChildren;
}

export function Labelled({ id, label, wide = false, children }: LabelledProps) {
  return (
    <div class={wide ? "wide" : ""}>
      <label for={id}>{say(label)}</label>
      {children}
    </div>
  );
}
