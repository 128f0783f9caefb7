// How the rate of a line is chosen: the fields of its rules, and the current state.

import type { AdaptivePace, Pace, PaceState } from "../api.js";
import { Labelled } from "../components/labelled.js";
import { count } from "../format.js";
import { t, tEnum } from "../i18n.js";

const NUMBERS = ["minPerMinute", "maxPerMinute", "targetP95Ms", "maxErrorPercent"] as const;
const FIRST: AdaptivePace = { minPerMinute: 60, maxPerMinute: 6000, targetP95Ms: 500, maxErrorPercent: 5, healthUrl: null, prometheus: null };

/** The fields of the rules. Queries of Prometheus are set by the admin API and kept here. */
export function PaceFields({ id, pace, change }: { id: string; pace: Pace; change: (pace: Pace) => void }) {
  const adaptive = pace === "fixed" ? null : pace.adaptive;
  const set = (changes: Partial<AdaptivePace>) => adaptive && change({ adaptive: { ...adaptive, ...changes } });
  return (
    <>
      <Labelled id={`${id}-pace`} label="pace">
        <select
          id={`${id}-pace`}
          value={adaptive ? "adaptive" : "fixed"}
          onChange={(event) => change(event.currentTarget.value === "fixed" ? "fixed" : { adaptive: adaptive ?? FIRST })}
        >
          {["fixed", "adaptive"].map((choice) => (
            <option key={choice} value={choice}>
              {tEnum("pace", choice)}
            </option>
          ))}
        </select>
      </Labelled>
      {adaptive &&
        NUMBERS.map((name) => (
          <Labelled key={name} id={`${id}-${name}`} label={name}>
            <input id={`${id}-${name}`} type="number" min={1} required value={adaptive[name]} onInput={(event) => set({ [name]: Number(event.currentTarget.value) })} />
          </Labelled>
        ))}
      {adaptive && (
        <Labelled id={`${id}-healthUrl`} label="healthUrl" wide>
          <input id={`${id}-healthUrl`} type="url" maxLength={2048} value={adaptive.healthUrl ?? ""} onInput={(event) => set({ healthUrl: event.currentTarget.value || null })} />
        </Labelled>
      )}
    </>
  );
}

/** Returns why the rate is what it is. */
export function paceReason(state: PaceState, pace: Pace): string {
  const adaptive = pace === "fixed" ? FIRST : pace.adaptive;
  const values = {
    p95: state.p95Ms ?? 0,
    target: adaptive.targetP95Ms,
    errors: state.errorPercent,
    limit: adaptive.maxErrorPercent,
  };
  const text = tEnum("pace", state.reason);
  return text.replace(/\{(\w+)\}/g, (_, name: string) => count(values[name as keyof typeof values] ?? 0));
}
