// The rules of a line that are changed together.

import { useId } from "preact/hooks";
import type { Item, Policy } from "../api.js";
import { Labelled } from "../components/labelled.js";
import { useDraft } from "../components/draft.js";
import { type Key, t, tEnum } from "../i18n.js";
import { PaceFields } from "./pace.js";

const NUMBERS = ["passTtlSeconds", "graceSeconds", "missedKeepSeconds"] as const;
const CHOICES = { mode: ["always", "auto"], onRejoin: ["keep", "requeue"], challenge: ["off", "pow", "widget"] } as const;

/** What is typed is kept until it is saved; everything else shows what is true. */
export function PolicyForm({ item, save }: { item: Item; save: (changes: Partial<Policy>) => Promise<boolean> }) {
  const { typed, changed, change, saved } = useDraft<Policy>();
  const id = useId();
  const rules = { ...item.policy, ...typed };
  return (
    <section class="card" aria-labelledby={`${id}-rules`}>
      <h2 id={`${id}-rules`}>{t("policy")}</h2>
      <form
        class="rules"
        onSubmit={(event) => {
          event.preventDefault();
          void save(typed).then((done) => done && saved());
        }}
      >
        {Object.entries(CHOICES).map(([name, choices]) => (
          <Labelled key={name} id={`${id}-${name}`} label={name as Key}>
            <select id={`${id}-${name}`} value={rules[name as keyof typeof CHOICES] ?? choices[0]} onChange={(event) => change({ [name]: event.currentTarget.value })}>
              {choices.map((choice) => (
                <option key={choice} value={choice}>
                  {tEnum(name, choice)}
                </option>
              ))}
            </select>
          </Labelled>
        ))}
        <PaceFields id={id} pace={rules.pace ?? "fixed"} change={(pace) => change({ pace })} />
        {NUMBERS.map((name) => (
          <Labelled key={name} id={`${id}-${name}`} label={name}>
            <input
              id={`${id}-${name}`}
              type="number"
              min={0}
              required
              value={rules[name]}
              onInput={(event) => change({ [name]: Number(event.currentTarget.value) })}
            />
          </Labelled>
        ))}
        <Labelled id={`${id}-entryUrl`} label="entryUrl" wide>
          <input
            id={`${id}-entryUrl`}
            maxLength={2048}
            value={rules.entryUrl ?? ""}
            aria-describedby={`${id}-hint`}
            onInput={(event) => change({ entryUrl: event.currentTarget.value || null })}
          />
          <small id={`${id}-hint`}>{t("entryUrlHint")}</small>
        </Labelled>
        <label class="switch wide">
          <input type="checkbox" role="switch" checked={rules.admitUpToStock} onChange={(event) => change({ admitUpToStock: event.currentTarget.checked })} />
          {t("admitUpToStock")}
        </label>
        <button type="submit" class={changed ? "ready" : ""} disabled={!changed}>
          {t("save")}
        </button>
      </form>
    </section>
  );
}
