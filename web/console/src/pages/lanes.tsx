// The lanes of a line: their figures, and the dialog that changes them.

import { useId, useRef, useState } from "preact/hooks";
import { type Item, type LaneFigures, type LanePolicy, type LineDetail, linePath, Refusal } from "../api.js";
import { type Action, Dialog } from "../components/controls.js";
import { Field } from "../components/field.js";
import { count, people, percent } from "../format.js";
import { t } from "../i18n.js";
import { errorsOf, fieldsOf, type LaneErrors, type LaneFields, lanesOf, MAX_LANES, peopleIn, rowIn, standardShare } from "../lanes.js";
import { InvitationsDialog } from "./invitations.js";
import type { PageProps } from "./page.js";

interface CardProps extends PageProps {
  line: LineDetail;
  /** The standard lane first; empty without lanes. */
  lanes: LaneFigures[];
  act: Action;
}

export function LanesCard({ line, lanes, act, watch: { api } }: CardProps) {
  const [open, setOpen] = useState<"lanes" | "codes" | null>(null);
  const { itemId, policy } = line.item;
  const close = () => setOpen(null);
  const save = async (changed: LanePolicy[], failed: (detail: string) => void) => {
    const send = () =>
      api.send<Item>("PATCH", linePath(itemId, "policy"), { lanes: changed }).catch((error: unknown) => {
        if (error instanceof Refusal) failed(error.message);
        throw error;
      });
    if (await act(t("lanesSaved"), send)) close();
  };
  return (
    <section class="card" aria-labelledby="lanes">
      <div class="head">
        <h2 id="lanes">{t("lanes")}</h2>
        {lanes.length > 0 && (
          <button type="button" onClick={() => setOpen("codes")}>
            {t("codesOpen")}
          </button>
        )}
        <button type="button" onClick={() => setOpen("lanes")}>
          {t(lanes.length > 0 ? "openingChange" : "lanesAdd")}
        </button>
      </div>
      {lanes.length > 0 ? <LanesTable lanes={lanes} /> : <p class="soft">{t("lanesNone")}</p>}
      {open === "lanes" && <LanesDialog lanes={policy.lanes ?? lanes.slice(1)} figures={lanes} save={save} close={close} />}
      {open === "codes" && <InvitationsDialog itemId={itemId} at={line.at} lanes={lanes.slice(1)} act={act} api={api} close={close} />}
    </section>
  );
}

function LanesTable({ lanes }: { lanes: LaneFigures[] }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="lanes">
        <table class="lanes">
          <thead>
            <tr>
              <th scope="col">{t("lane")}</th>
              {(["share", "waiting", "inside", "admitted"] as const).map((name) => (
                <th key={name} scope="col" class="number">
                  {t(name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lanes.map((lane, index) => (
              <tr key={lane.name}>
                <th scope="row">
                  {index === 0 ? t("laneStandard") : lane.name}
                  {index === 0 && <small>{t("laneStandardHint")}</small>}
                </th>
                <td class="number">{lane.first ? t("laneFirst") : percent(lane.weight / 100)}</td>
                <td class="number">
                  <b>{count(lane.waiting)}</b>
                  <small>{asideOf(lane)}</small>
                </td>
                <td class="number">{count(lane.entered)}</td>
                <td class="number">{count(lane.admitted)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">{t("lanesHint")}</p>
    </>
  );
}

function asideOf({ returning, missed }: LaneFigures): string {
  const texts = [returning > 0 && t("returning", { n: count(returning) }), missed > 0 && t("missed", { n: count(missed) })];
  return texts.filter(Boolean).join(" · ");
}

interface DialogProps {
  lanes: LanePolicy[];
  figures: LaneFigures[];
  save: (lanes: LanePolicy[], failed: (detail: string) => void) => Promise<void>;
  close: () => void;
}

function LanesDialog({ lanes, figures, save, close }: DialogProps) {
  const [rows, setRows] = useState(() => (lanes.length > 0 ? fieldsOf(lanes) : [newRow(0)]));
  const [isChecked, setChecked] = useState(false);
  const [refused, setRefused] = useState<{ row: number | null; detail: string } | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const add = useRef<HTMLButtonElement>(null);
  const next = useRef(rows.length);
  const found = errorsOf(rows);
  const left = standardShare(rows);
  const set = (changed: LaneFields[]) => {
    setRows(changed);
    setRefused(null);
  };
  const errors = (id: number): LaneErrors => ({ ...(isChecked && found.get(id)), ...(refused?.row === id && { name: refused.detail }) });
  // After the next rendering, which shows the errors or the new row.
  const focus = (selector: string) => requestAnimationFrame(() => form.current?.querySelector<HTMLElement>(selector)?.focus());
  const submit = () => {
    setRefused(null);
    setChecked(true);
    if (found.size > 0) return focus("[aria-invalid=true]");
    void save(lanesOf(rows), (detail) => {
      setRefused({ row: rowIn(detail, rows), detail });
      focus("[aria-invalid=true]");
    });
  };
  return (
    <Dialog title={t("lanesTitle")} close={close} wide>
      <form
        ref={form}
        class="lanes"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {rows.map((row) => (
          <LaneRow
            key={row.id}
            row={row}
            errors={errors(row.id)}
            people={peopleIn(figures.find(({ name }) => name === row.before) ?? { waiting: 0, missed: 0 })}
            change={(changes) => set(rows.map((one) => (one === row ? { ...one, ...changes } : one)))}
            remove={() => {
              set(rows.filter((one) => one !== row));
              add.current?.focus();
            }}
          />
        ))}
        <p class="left">
          {t("standardLeft")}{" "}
          <output class={left < 1 ? "grave" : ""} aria-live="polite">
            {percent(left / 100)}
          </output>
        </p>
        {refused && refused.row === null && (
          <p class="grave" role="alert">
            {refused.detail}
          </p>
        )}
        <div class="menu">
          <button
            ref={add}
            type="button"
            disabled={rows.length >= MAX_LANES}
            onClick={() => {
              set([...rows, newRow(next.current++)]);
              focus("fieldset:last-of-type input");
            }}
          >
            {t("laneAdd")}
          </button>
          <button type="button" onClick={close}>
            {t("cancel")}
          </button>
          <button type="submit" class="ready">
            {t("save")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const newRow = (id: number): LaneFields => ({ id, before: null, name: "", weight: "", first: false });

interface RowProps {
  row: LaneFields;
  errors: LaneErrors;
  /** The people in the lane. */
  people: number;
  change: (changes: Partial<LaneFields>) => void;
  remove: () => void;
}

function LaneRow({ row, errors, people: inLane, change, remove }: RowProps) {
  const id = useId();
  const isFixed = inLane > 0;
  const title = row.name || t("laneNew");
  return (
    <fieldset>
      <legend class="unseen">{title}</legend>
      <Field id={`${id}-name`} label="itemName" hint={isFixed ? t("laneHasPeople", { who: people(inLane) }) : t("itemIdHint")} error={errors.name}>
        {(described) => (
          <input
            id={`${id}-name`}
            maxLength={32}
            autocomplete="off"
            spellcheck={false}
            readOnly={isFixed && row.name === row.before}
            value={row.name}
            {...described}
            onInput={(event) => change({ name: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field id={`${id}-weight`} label="laneShare" error={errors.weight}>
        {(described) => (
          <input
            id={`${id}-weight`}
            type="number"
            inputMode="numeric"
            min={1}
            max={99}
            disabled={row.first}
            value={row.first ? "" : row.weight}
            {...described}
            onInput={(event) => change({ weight: event.currentTarget.value })}
          />
        )}
      </Field>
      <label class="switch">
        <input type="checkbox" checked={row.first} onChange={(event) => change({ first: event.currentTarget.checked })} />
        {t("laneFirst")}
      </label>
      <button type="button" class="danger" disabled={isFixed} aria-label={t("laneRemoveNamed", { name: title })} onClick={remove}>
        {t("laneRemove")}
      </button>
    </fieldset>
  );
}
