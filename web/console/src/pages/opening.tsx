// The opening of a line: what was planned, the lobby while it lasts, the draw, and the form that plans it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Draw, drawPath, type Item, type LineDetail, linePath, type Opening, Refusal } from "../api.js";
import { type ServerClock, useSeconds, useServerClock } from "../clock.js";
import { type Action, Dialog } from "../components/controls.js";
import { useDraft } from "../components/draft.js";
import { Field } from "../components/field.js";
import { Figure } from "../components/summary.js";
import { clock as clockTime, count, countdown, people, timeOf, zoneOf } from "../format.js";
import { t } from "../i18n.js";
import { publicOrigin } from "../public-address.js";
import { changesOf, errorsOf, fieldIn, fieldsOf, isDrawing, openingOf, type OpeningErrors, type OpeningFields, planText, roundText, type Stage, stageOf } from "../opening.js";
import { AwaitedBeacon } from "./beacon.js";
import type { PageProps } from "./page.js";

interface CardProps extends PageProps {
  line: LineDetail;
  act: Action;
}

export function OpeningCard({ line, act, watch: { api } }: CardProps) {
  const { item, at } = line;
  const opening = item.policy.opening ?? null;
  const waiting = line.people.waiting;
  /** The server replaces or removes an opening only while the line is empty. */
  const isEmpty = waiting + line.people.missed === 0;
  const clock = useServerClock(at);
  const now = Date.parse(at);
  const stage = stageOf(item, now);
  const drawing = isDrawing(item);
  const draft = useDraft<OpeningFields>();
  const [editing, setEditing] = useState(false);
  const [asking, setAsking] = useState<"open" | "remove" | null>(null);
  const change = useRef<HTMLButtonElement>(null);
  const isShown = editing || draft.changed;
  const fold = () => {
    setEditing(false);
    change.current?.focus();
  };
  const path = linePath(item.itemId, "policy");
  const save = async (changes: Partial<Opening>, failed: (error: Refusal) => void) => {
    const done = await act(
      (saved: Item) => savedText(saved, waiting, now),
      () => api.send<Item>("PATCH", path, { opening: changes }).catch((error: unknown) => {
        if (error instanceof Refusal) failed(error);
        throw error;
      }),
    );
    if (!done) return;
    draft.saved();
    fold();
  };
  const openNow = () =>
    act(t("openNowDone", { who: people(waiting) }), () => api.send("POST", linePath(item.itemId, "open")));
  const remove = () =>
    act((left: Item) => t("openingRemoved", { state: t(`state${left.lineState}`) }), () => api.send<Item>("PATCH", path, { opening: null }));
  return (
    <section class="card opening" aria-labelledby="opening">
      <div class="head">
        <h2 id="opening">{t("opening")}</h2>
        {(stage === "scheduled" || stage === "lobby") && !drawing && (
          <button type="button" class="ready" onClick={() => setAsking("open")}>
            {t("openNow")}
          </button>
        )}
        <button ref={change} type="button" aria-expanded={isShown} disabled={isShown} onClick={() => setEditing(true)}>
          {t(opening ? "openingChange" : "openingPlan")}
        </button>
        {opening && (
          <button type="button" class="danger" onClick={() => setAsking("remove")}>
            {t("openingRemove")}
          </button>
        )}
      </div>
      <p class="soft">
        {opening ? stageText(stage, opening, now) : t("openingNone")}
        {!opening && !isEmpty && ` ${t("openingNeedsEmpty", { who: people(waiting) })}`}
      </p>
      {drawing && item.draw?.beacon && <AwaitedBeacon item={item} beacon={item.draw.beacon} clock={clock} act={act} api={api} />}
      {opening && <Facts stage={stage} item={item} opening={opening} waiting={waiting} clock={clock} />}
      {item.draw && <DrawRecord id={item.itemId} draw={item.draw} now={now} />}
      {isShown && (
        <OpeningForm
          opening={opening}
          stage={stage}
          isEmpty={isEmpty}
          clock={clock}
          draft={draft}
          save={save}
          cancel={() => {
            draft.clear();
            fold();
          }}
        />
      )}
      {asking === "open" && opening && (
        <Ask title={t("openNowAsk")} yes={t("openNowYes")} close={() => setAsking(null)} run={openNow}>
          {stage === "lobby" ? t(`openNowText${opening.order}`, { who: people(waiting) }) : t("openNowTextEmpty")}
          {opening.beacon && ` ${t("openNowBeacon")}`}
        </Ask>
      )}
      {asking === "remove" && (
        <Ask title={t("openingRemoveAsk")} yes={isEmpty ? t("openingRemoveYes") : null} danger close={() => setAsking(null)} run={remove}>
          {isEmpty ? t("openingRemoveText") : t("openingRemoveLater", { who: people(waiting) })}
        </Ask>
      )}
    </section>
  );
}

function savedText({ lineState, openedAt, policy: { opening } }: Item, waiting: number, now: number): string {
  if (!opening) return t("rulesSaved");
  if (openedAt) return t("openingCloseSaved", { closes: opening.closesAt ? t("planClosesAt", { at: timeOf(opening.closesAt, now) }) : t("planStaysOpen") });
  const when = opening.opensAt ? t("openingPlanned", { at: timeOf(opening.opensAt, now) }) : t("openingPlannedByHand");
  const isAhead = lineState === "SCHEDULED" && opening.lobbyAt;
  return `${when} ${isAhead ? t("openingLobbyAhead", { at: timeOf(isAhead, now) }) : t("openingLobbyNow", { who: people(waiting) })}`;
}

function stageText(stage: Stage, opening: Opening, now: number): string {
  if (stage === "closed") return t("openingClosed");
  return stage === "opened" ? t(`openedOrder${opening.order}`) : planText(opening, now);
}

interface FactsProps {
  stage: Stage;
  item: Item;
  opening: Opening;
  waiting: number;
  clock: ServerClock;
}

function Facts({ stage, item, opening, waiting, clock }: FactsProps) {
  const now = clock.now();
  const isAhead = stage === "scheduled" || stage === "lobby";
  const { opensAt, lobbyAt, closesAt } = opening;
  const size = item.draw?.cohortSize ?? null;
  return (
    <dl class="facts">
      {stage === "lobby" && (
        <Figure name={t("inLobby")}>
          <span id="lobby">{count(waiting)}</span>
        </Figure>
      )}
      {stage === "scheduled" && lobbyAt && <Countdown name="lobbyIn" to={lobbyAt} clock={clock} />}
      {isAhead && opensAt && !isDrawing(item) && <Countdown name="opensIn" to={opensAt} clock={clock} />}
      {isAhead && !opensAt && (
        <Figure name={t("opensIn")}>
          <span class="name">{t("opensByHand")}</span>
        </Figure>
      )}
      {item.openedAt && <Figure name={t("openedAt")}>{timeOf(item.openedAt, now)}</Figure>}
      {size !== null && (
        <Figure name={t("cohort")}>
          <span id="cohort">{count(size)}</span>
        </Figure>
      )}
      {stage === "opened" && closesAt && <Countdown name="closesIn" to={closesAt} clock={clock} />}
      {stage === "closed" && closesAt && <Figure name={t("closedAt")}>{timeOf(closesAt, now)}</Figure>}
    </dl>
  );
}

function Countdown({ name, to, clock }: { name: "lobbyIn" | "opensIn" | "closesIn"; to: string; clock: ServerClock }) {
  const now = useSeconds(clock);
  const left = Date.parse(to) - now;
  return (
    <Figure name={t(name)} hint={timeOf(to, now)}>
      <span role="timer">{left > 0 ? countdown(left) : t("anyMoment")}</span>
    </Figure>
  );
}

function DrawRecord({ id, draw, now }: { id: string; draw: Draw; now: number }) {
  const origin = publicOrigin(location);
  const path = drawPath(id);
  return (
    <dl class="record">
      <div>
        <dt>{t("commitment")}</dt>
        <dd>
          <code id="commitment">{draw.commitment}</code>
          <small>{t(draw.state === "DRAWN" ? "drawnHint" : "commitmentHint")}</small>
        </dd>
      </div>
      {draw.beacon && (
        <div>
          <dt>{t("beaconTerm")}</dt>
          <dd>
            <span id="beacon">{t("beaconRound", { round: String(draw.beacon.round), at: timeOf(draw.beacon.publishedAt, now) })}</span>
            <small>{t("beaconTermHint")}</small>
          </dd>
        </div>
      )}
      <div>
        <dt>{t("drawRecord")}</dt>
        <dd>
          {origin ? (
            <a href={origin + path} target="_blank" rel="noreferrer">
              {path}
            </a>
          ) : (
            <code>{path}</code>
          )}
          <small>{t("drawRecordHint")}</small>
        </dd>
      </div>
    </dl>
  );
}

interface FormProps {
  opening: Opening | null;
  stage: Stage;
  isEmpty: boolean;
  clock: ServerClock;
  draft: ReturnType<typeof useDraft<OpeningFields>>;
  save: (changes: Partial<Opening>, failed: (error: Refusal) => void) => Promise<void>;
  cancel: () => void;
}

function OpeningForm({ opening, stage, isEmpty, clock, draft: { typed, changed, change }, save, cancel }: FormProps) {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  /** Errors show after the first attempt to save, then while the operator types. */
  const [isChecked, setChecked] = useState(false);
  const [refused, setRefused] = useState<{ field: keyof OpeningFields | null; detail: string } | null>(null);
  const shown = { ...fieldsOf(opening), ...typed };
  const found = errorsOf(shown, opening, clock.now());
  const errors: OpeningErrors = { ...(isChecked && found), ...(refused?.field && { [refused.field]: refused.detail }) };
  const set = (fields: Partial<OpeningFields>) => {
    change(fields);
    setRefused(null);
  };
  const hasOpened = stage === "opened" || stage === "closed";
  /** A field that was typed before it became final stays editable, because the operator has to see why it is refused. */
  const isFinal = (name: keyof OpeningFields) =>
    !isEmpty && !(name in typed) && name !== "closesAt" && (hasOpened || (stage === "lobby" && name !== "opensAt"));
  useEffect(() => form.current?.querySelector<HTMLElement>("input:enabled")?.focus(), []);
  useEffect(() => {
    if (isChecked || refused) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [isChecked, refused]);
  const submit = () => {
    setRefused(null);
    setChecked(Object.keys(found).length > 0);
    if (Object.keys(found).length > 0) return form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    void save(changesOf(shown, opening), ({ message }) => setRefused({ field: fieldIn(message), detail: message }));
  };
  const time = (name: "lobbyAt" | "opensAt" | "closesAt") => (
    <Field id={`${id}-${name}`} label={name} hint={t(`${name}Hint`)} error={errors[name]}>
      {(described) => (
        <input
          id={`${id}-${name}`}
          type="datetime-local"
          // Any step: a stored time with seconds is valid, and seconds are shown only then.
          step="any"
          max="9999-12-31T23:59"
          value={shown[name]}
          disabled={isFinal(name)}
          {...described}
          onInput={(event) => set({ [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  return (
    <form
      ref={form}
      class="rules"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {time("lobbyAt")}
      {time("opensAt")}
      {time("closesAt")}
      <small class="wide">
        <Zone clock={clock} at={opening?.opensAt ?? null} />
      </small>
      <fieldset class="wide" disabled={isFinal("order")} aria-describedby={errors.order || isFinal("order") ? `${id}-order` : undefined}>
        <legend>{t("order")}</legend>
        {(["arrival", "draw"] as const).map((order) => (
          <label key={order} class="choice">
            <input type="radio" name={`${id}-order`} checked={shown.order === order} onChange={() => set({ order })} />
            <span>
              <b>{t(`order${order}`)}</b>
              <small>{t(`order${order}Text`)}</small>
            </span>
          </label>
        ))}
        {(errors.order || isFinal("order")) && (
          <small id={`${id}-order`} class={errors.order ? "grave" : ""} role={errors.order ? "alert" : undefined}>
            {errors.order ?? t("orderFinal")}
          </small>
        )}
      </fieldset>
      {shown.order === "draw" && (
        <details class="wide" open={shown.usesBeacon || Boolean(errors.beacon)}>
          <summary>{t("advanced")}</summary>
          <label class="choice">
            <input
              id={`${id}-usesBeacon`}
              type="checkbox"
              checked={shown.usesBeacon}
              disabled={isFinal("usesBeacon")}
              onChange={(event) => set({ usesBeacon: event.currentTarget.checked })}
            />
            <span>
              <b>{t("usesBeacon")}</b>
              <small>{t("usesBeaconText")}</small>
            </span>
          </label>
          {shown.usesBeacon && (
            <Field id={`${id}-beacon`} label="beacon" hint={`${t("beaconHint")} ${roundText(openingOf(shown), clock.now())}`} error={errors.beacon}>
              {(described) => (
                <input
                  id={`${id}-beacon`}
                  inputMode="numeric"
                  value={shown.beacon}
                  disabled={isFinal("beacon")}
                  {...described}
                  onInput={(event) => set({ beacon: event.currentTarget.value.trim() })}
                />
              )}
            </Field>
          )}
        </details>
      )}
      <p class="wide preview" aria-live="polite">
        {(changed || !opening) && Object.keys(found).length === 0 && planText(openingOf(shown), clock.now(), opening !== null)}
      </p>
      {refused && !refused.field && (
        <p class="wide grave" role="alert">
          {refused.detail}
        </p>
      )}
      <div class="wide row">
        <button type="submit" class={changed || !opening ? "ready" : ""} disabled={!changed && opening !== null}>
          {t(opening ? "save" : "openingPlanYes")}
        </button>
        <button type="button" onClick={cancel}>
          {t("cancel")}
        </button>
      </div>
    </form>
  );
}

/** The time zone of a form, and the clock that the line follows. */
export function Zone({ clock, at }: { clock: ServerClock; at: string | null }) {
  const now = useSeconds(clock);
  return <>{t("openingZone", { zone: zoneOf(at ? Date.parse(at) : now), now: clockTime(new Date(now).toISOString()) })}</>;
}

interface AskProps {
  title: string;
  /** Null: it cannot be done now. */
  yes: string | null;
  danger?: boolean;
  close: () => void;
  run: () => Promise<boolean>;
  children: ComponentChildren;
}

function Ask({ title, yes, danger = false, close, run, children }: AskProps) {
  return (
    <Dialog title={title} close={close}>
      <p>{children}</p>
      <div class="menu">
        <button type="button" autofocus onClick={close}>
          {t("cancel")}
        </button>
        {yes && (
          <button type="button" class={danger ? "danger" : "ready"} onClick={() => void run().then(close)}>
            {yes}
          </button>
        )}
      </div>
    </Dialog>
  );
}
