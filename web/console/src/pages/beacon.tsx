// The public random number of a draw: which one, whether it is known, and the form that hands it in if it is late.

import { useId, useState } from "preact/hooks";
import { type DrawBeacon, type Item, linePath, Refusal } from "../api.js";
import { type ServerClock, useSeconds } from "../clock.js";
import type { Action } from "../components/controls.js";
import { Field } from "../components/field.js";
import { countdown, timeOf } from "../format.js";
import { t } from "../i18n.js";
import { isOverdue, signatureIn } from "../opening.js";
import type { PageProps } from "./page.js";

interface BeaconProps {
  item: Item;
  beacon: DrawBeacon;
  clock: ServerClock;
  act: Action;
  api: PageProps["watch"]["api"];
}

/** What is shown from the moment at which the cohort is known until the line opens. */
export function AwaitedBeacon({ item, beacon, clock, act, api }: BeaconProps) {
  const now = useSeconds(clock);
  const left = Date.parse(beacon.publishedAt) - now;
  const shown = { round: String(beacon.round), at: timeOf(beacon.publishedAt, now) };
  if (beacon.signature !== null) return <p role="status">{t("beaconKnown", shown)}</p>;
  if (!isOverdue(beacon, now)) return <p role="status">{t("beaconAwaited", { ...shown, left: countdown(left) })}</p>;
  return (
    <>
      <p class="grave" role="alert">
        {t("beaconOverdue", { ...shown, late: countdown(-left) })}
      </p>
      <HandIn item={item} beacon={beacon} act={act} api={api} />
    </>
  );
}

function HandIn({ item, beacon, act, api }: Omit<BeaconProps, "clock">) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string>();
  const submit = async () => {
    const signature = signatureIn(typed);
    if (signature === null) return setError(t("beaconSignatureInvalid"));
    setError(undefined);
    const body = { round: beacon.round, signature };
    await act(t("beaconHandedIn"), () =>
      api.send("PUT", linePath(item.itemId, "opening/beacon"), body).catch((failure: unknown) => {
        if (failure instanceof Refusal) setError(failure.message);
        throw failure;
      }),
    );
  };
  return (
    <form
      class="rules"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Field id={`${id}-signature`} label="beaconSignature" hint={t("beaconSignatureHint", { round: String(beacon.round) })} error={error}>
        {(described) => (
          <input
            id={`${id}-signature`}
            autocomplete="off"
            spellcheck={false}
            value={typed}
            {...described}
            onInput={(event) => {
              setTyped(event.currentTarget.value);
              setError(undefined);
            }}
          />
        )}
      </Field>
      <div class="wide row">
        <button type="submit" class="ready" disabled={typed.trim() === ""}>
          {t("beaconHandIn")}
        </button>
      </div>
    </form>
  );
}
