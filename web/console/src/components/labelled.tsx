// A field with its name above it.

import type { ComponentChildren } from "preact";
import { type Key, t } from "../i18n.js";

interface LabelledProps {
  id: string;
  label: Key;
  wide?: boolean;
  children: ComponentChildren;
}

export function Labelled({ id, label, wide = false, children }: LabelledProps) {
  return (
    <div class={wide ? "wide" : ""}>
      <label for={id}>{t(label)}</label>
      {children}
    </div>
  );
}
