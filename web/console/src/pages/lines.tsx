// All lines: a part of them at a time, searched and sorted by the server, so that a thousand are
// as fast as ten.

import { useState } from "preact/hooks";
import { type LineState, type LineView, linePath, type Overview, STATES } from "../api.js";
import { count, rate, share, shortName, stretch } from "../format.js";
import { Dialog, NumberControl, Toast, useActs } from "../parts/controls.js";
import { Events, Figure, lineAddress, Processes, State } from "../parts/glance.js";
import { usePoll } from "../poll.js";
import { type Key, say, sayOf } from "../words.js";
import { Lost, type PageProps } from "./page.js";

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
  const asked = new URLSearchParams({ sort, offset: String(offset), limit: String(PAGE) });
  if (search) asked.set("search", search);
  if (state) asked.set("state", state);
  const polled = usePoll<Overview>(watch, `/overview?${asked}`);
  const [act, said] = useActs(polled.again);
  const { data, lost } = polled;
  const { api } = watch;
  if (!data) return <Lost lost={lost} />;
  return (
    <main>
      <Lost lost={lost} />
      <h1 class="unseen">{say("allLines")}</h1>
      <Glance overview={data} />
      <section class="card settings" aria-labelledby="settings">
        <h2 id="settings">{say("settings")}</h2>
        <div class="controls">
          <NumberControl
            label={say("quota")}
            hint={say("quotaHint")}
            value={data.tokenCountToMove}
            max={1_000_000}
            set={(tokenCountToMove) =>
              act(say("valueSet", { what: say("quota"), n: count(tokenCountToMove ?? 0) }), () => api.send("PUT", "/waiting-queue/token-count-to-move", { tokenCountToMove }))
            }
          />
          <NumberControl
            label={say("tick")}
            hint={say("tickHint")}
            value={data.tickMs}
            min={50}
            max={60_000}
            set={(tickMs) => act(say("valueSet", { what: say("tick"), n: count(tickMs ?? 0) }), () => api.send("PUT", "/waiting-queue/tick-ms", { tickMs }))}
          />
        </div>
      </section>
      <section class="card" aria-labelledby="lines">
        <div class="head">
          <h2 id="lines">{say("lines")}</h2>
          <input
            type="search"
            aria-label={say("search")}
            placeholder={say("search")}
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setOffset(0);
            }}
          />
          <select
            aria-label={say("state")}
            value={state}
            onChange={(event) => {
              setState(event.currentTarget.value as LineState | "");
              setOffset(0);
            }}
          >
            <option value="">{say("anyState")}</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {sayOf("state", state)}
              </option>
            ))}
          </select>
          <button type="button" onClick={() => setCreating(true)}>
            {say("newLine")}
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
            act(say("lineCreated", { id }), () => api.send("POST", linePath(id, "manually"), { itemName, remainCount, waitingQueueEnabled: true }))
          }
        />
      )}
      <Toast said={said} />
    </main>
  );
}

function Glance({ overview }: { overview: Overview }) {
  const { totals, schedulers, outboxPending, storeMemory } = overview;
  const leader = schedulers.find(({ leading }) => leading);
  return (
    <dl class="figures">
      <Figure name={say("waiting")}>{count(totals.waiting)}</Figure>
      <Figure name={say("inside")}>{count(totals.entered)}</Figure>
      <Figure name={say("perSecond")}>{rate(totals.admittedPerSecond)}</Figure>
      <Figure name={say("lines")} hint={say("linesOf", { open: count(totals.open), all: count(totals.lines) })}>
        {count(totals.lines)}
      </Figure>
      <Figure name={say("outbox")} hint={say("outboxHint")}>
        {count(outboxPending)}
      </Figure>
      {storeMemory && storeMemory.limitBytes > 0 && (
        <Figure name={say("storeMemory")} hint={say(storeMemory.full ? "storeFull" : "storeMemoryHint")}>
          <span class={storeMemory.full ? "grave" : ""}>{share(storeMemory.usedBytes / storeMemory.limitBytes)}</span>
        </Figure>
      )}
      <Figure name={say("leader")}>
        {leader ? <span class="name">{shortName(leader.replica)}</span> : <span class="name grave">{say("noLeader")}</span>}
      </Figure>
    </dl>
  );
}

function Table({ lines, sort, setSort }: { lines: LineView[]; sort: string; setSort: (sort: string) => void }) {
  if (lines.length === 0) return <p class="soft">{say("noLines")}</p>;
  const order = sort === "name" || sort === "state" ? "ascending" : "descending";
  return (
    <div class="scroll" tabIndex={0} role="region" aria-labelledby="lines">
      <table class="lines">
        <thead>
          <tr>
            {COLUMNS.map(([name, key]) => (
              <th key={name} scope="col" class={NUMBERS.has(name) ? "number" : ""} aria-sort={sort === name ? order : "none"}>
                <button type="button" onClick={() => setSort(name)}>
                  {say(key)}
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
              <td class="number strong" data-label={say("waiting")}>{count(line.waitingCount)}</td>
              <td class="number" data-label={say("inside")}>{count(line.enteredCount)}</td>
              <td class="number" data-label={say("perSecondShort")}>{rate(line.admittedPerSecond)}</td>
              <td class="number" data-label={say("etaShort")}>{stretch(line.etaSeconds)}</td>
              <td class="number" data-label={say("stock")}>{count(line.remainCount)}</td>
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
    <nav class="pager" aria-label={say("lines")}>
      <button type="button" disabled={offset === 0} onClick={() => go(Math.max(0, offset - PAGE))}>
        {say("previous")}
      </button>
      <span>{say("shown", place)}</span>
      <button type="button" disabled={offset + shown >= all} onClick={() => go(offset + PAGE)}>
        {say("next")}
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
    <Dialog title={say("newLine")} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <label for="new-id">{say("itemId")}</label>
        <input id="new-id" name="id" required maxLength={64} pattern="[A-Za-z0-9._~\-]+" aria-describedby="new-id-hint" />
        <small id="new-id-hint">{say("itemIdHint")}</small>
        <label for="new-name">{say("itemName")}</label>
        <input id="new-name" name="name" required maxLength={200} />
        <label for="new-stock">{say("stock")}</label>
        <input id="new-stock" name="stock" type="number" min={0} max={4_294_967_295} required />
        <div class="menu">
          <button type="button" onClick={close}>
            {say("cancel")}
          </button>
          <button type="submit" class="ready">
            {say("create")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
