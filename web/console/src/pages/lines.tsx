// All lines, paged, searched and sorted by the server, so that a thousand are as fast as ten.

import { useState } from "preact/hooks";
import { type LineState, type LineView, linePath, type Overview, STATES } from "../api.js";
import { count, rate, percent, shortName, duration } from "../format.js";
import { Permitted, useMay } from "../caller.js";
import { Dialog, NumberControl, Toast, useActions } from "../components/controls.js";
import { Events, Figure, lineAddress, Processes, State } from "../components/summary.js";
import { usePoll } from "../poll.js";
import { type Key, t, tEnum } from "../i18n.js";
import { ConnectionLost, type PageProps } from "./page.js";

const PAGE = 50;
const NUMBERS = new Set(["waiting", "entered", "rate", "eta", "stock"]);
const COLUMNS: [string, Key][] = [
  ["name", "line"],
  ["state", "state"],
  ["waiting", "waiting"],
  ["entered", "inside"],
  ["rate", "perSecondShort"],
  ["eta", "etaShort"],
  ["stock", "stock"],
];

export function Lines({ watch }: PageProps) {
  const [search, setSearch] = useState("");
  const [state, setState] = useState<LineState | "">("");
  const [sort, setSort] = useState("waiting");
  const [offset, setOffset] = useState(0);
  const [creating, setCreating] = useState(false);
  const mayCreate = useMay("operator");
  const query = new URLSearchParams({ sort, offset: String(offset), limit: String(PAGE) });
  if (search) query.set("search", search);
  if (state) query.set("state", state);
  const polled = usePoll<Overview>(watch, `/overview?${query}`);
  const [act, message] = useActions(polled.again);
  const { data, lost } = polled;
  const { api } = watch;
  if (!data) return <ConnectionLost lost={lost} />;
  return (
    <main>
      <ConnectionLost lost={lost} />
      <h1 class="unseen">{t("allLines")}</h1>
      <Summary overview={data} />
      <section class="card settings" aria-labelledby="settings">
        <h2 id="settings">{t("settings")}</h2>
        <Permitted role="admin">
        <div class="controls">
          <NumberControl
            label={t("quota")}
            hint={t("quotaHint")}
            value={data.tokenCountToMove}
            max={1_000_000}
            set={(tokenCountToMove) =>
              act(t("valueSet", { what: t("quota"), n: count(tokenCountToMove ?? 0) }), () => api.send("PUT", "/waiting-queue/token-count-to-move", { tokenCountToMove }))
            }
          />
          <NumberControl
            label={t("tick")}
            hint={t("tickHint")}
            value={data.tickMs}
            min={50}
            max={60_000}
            set={(tickMs) => act(t("valueSet", { what: t("tick"), n: count(tickMs ?? 0) }), () => api.send("PUT", "/waiting-queue/tick-ms", { tickMs }))}
          />
        </div>
        </Permitted>
      </section>
      <section class="card" aria-labelledby="lines">
        <div class="head">
          <h2 id="lines">{t("lines")}</h2>
          <input
            type="search"
            aria-label={t("search")}
            placeholder={t("search")}
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setOffset(0);
            }}
          />
          <select
            aria-label={t("state")}
            value={state}
            onChange={(event) => {
              setState(event.currentTarget.value as LineState | "");
              setOffset(0);
            }}
          >
            <option value="">{t("anyState")}</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {tEnum("state", state)}
              </option>
            ))}
          </select>
          <button type="button" disabled={!mayCreate} onClick={() => setCreating(true)}>
            {t("newLine")}
          </button>
        </div>
        <Table lines={data.lines} sort={sort} setSort={setSort} />
        <Pager offset={offset} shown={data.lines.length} all={data.matching} go={setOffset} />
      </section>
      <div class="columns">
        <Processes overview={data} />
        <Events events={data.events} />
      </div>
      {creating && (
        <NewLine
          close={() => setCreating(false)}
          create={(id, itemName, remainCount) =>
            act(t("lineCreated", { id }), () => api.send("POST", linePath(id, "manually"), { itemName, remainCount, waitingQueueEnabled: true }))
          }
        />
      )}
      <Toast message={message} />
    </main>
  );
}

function Summary({ overview }: { overview: Overview }) {
  const { totals, schedulers, outboxPending, storeMemory } = overview;
  const leader = schedulers.find(({ leading }) => leading);
  return (
    <dl class="figures">
      <Figure name={t("waiting")}>{count(totals.waiting)}</Figure>
      <Figure name={t("inside")}>{count(totals.entered)}</Figure>
      <Figure name={t("perSecond")}>{rate(totals.admittedPerSecond)}</Figure>
      <Figure name={t("lines")} hint={t("linesOf", { open: count(totals.open), all: count(totals.lines) })}>
        {count(totals.lines)}
      </Figure>
      <Figure name={t("outbox")} hint={t("outboxHint")}>
        {count(outboxPending)}
      </Figure>
      {storeMemory && storeMemory.limitBytes > 0 && (
        <Figure name={t("storeMemory")} hint={t(storeMemory.full ? "storeFull" : "storeMemoryHint")}>
          <span class={storeMemory.full ? "grave" : ""}>{percent(storeMemory.usedBytes / storeMemory.limitBytes)}</span>
        </Figure>
      )}
      <Figure name={t("leader")}>
        {leader ? <span class="name">{shortName(leader.replica)}</span> : <span class="name grave">{t("noLeader")}</span>}
      </Figure>
    </dl>
  );
}

function Table({ lines, sort, setSort }: { lines: LineView[]; sort: string; setSort: (sort: string) => void }) {
  if (lines.length === 0) return <p class="soft">{t("noLines")}</p>;
  const order = sort === "name" || sort === "state" ? "ascending" : "descending";
  return (
    <div class="scroll" tabIndex={0} role="region" aria-labelledby="lines">
      <table class="lines">
        <thead>
          <tr>
            {COLUMNS.map(([name, key]) => (
              <th key={name} scope="col" class={NUMBERS.has(name) ? "number" : ""} aria-sort={sort === name ? order : "none"}>
                <button type="button" onClick={() => setSort(name)}>
                  {t(key)}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.itemId}>
              <th scope="row">
                <a href={lineAddress(line.itemId)}>{line.itemName}</a>
                <small>{line.itemId}</small>
              </th>
              <td>
                <State state={line.lineState} />
              </td>
              <td class="number strong" data-label={t("waiting")}>{count(line.waitingCount)}</td>
              <td class="number" data-label={t("inside")}>{count(line.enteredCount)}</td>
              <td class="number" data-label={t("perSecondShort")}>{rate(line.admittedPerSecond)}</td>
              <td class="number" data-label={t("etaShort")}>{duration(line.etaSeconds)}</td>
              <td class="number" data-label={t("stock")}>{count(line.remainCount)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Pager({ offset, shown, all, go }: { offset: number; shown: number; all: number; go: (offset: number) => void }) {
  if (all <= PAGE && offset === 0) return null;
  const place = { from: count(Math.min(offset + 1, all)), to: count(offset + shown), all: count(all) };
  return (
    <nav class="pager" aria-label={t("lines")}>
      <button type="button" disabled={offset === 0} onClick={() => go(Math.max(0, offset - PAGE))}>
        {t("previous")}
      </button>
      <span>{t("shown", place)}</span>
      <button type="button" disabled={offset + shown >= all} onClick={() => go(offset + PAGE)}>
        {t("next")}
      </button>
    </nav>
  );
}

interface NewLineProps {
  close: () => void;
  create: (id: string, name: string, stock: number) => Promise<boolean>;
}

function NewLine({ close, create }: NewLineProps) {
  const submit = async (form: HTMLFormElement) => {
    const given = new FormData(form);
    if (await create(String(given.get("id")), String(given.get("name")), Number(given.get("stock")))) close();
  };
  return (
    <Dialog title={t("newLine")} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <label for="new-id">{t("itemId")}</label>
        <input id="new-id" name="id" required maxLength={64} pattern="[A-Za-z0-9._~\-]+" aria-describedby="new-id-hint" />
        <small id="new-id-hint">{t("itemIdHint")}</small>
        <label for="new-name">{t("itemName")}</label>
        <input id="new-name" name="name" required maxLength={200} />
        <label for="new-stock">{t("stock")}</label>
        <input id="new-stock" name="stock" type="number" min={0} max={4_294_967_295} required />
        <div class="menu">
          <button type="button" onClick={close}>
            {t("cancel")}
          </button>
          <button type="submit" class="ready">
            {t("create")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
