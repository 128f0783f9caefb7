// One line: how it is, how it was, and its levers.

import { useState } from "preact/hooks";
import { type Change, type LineNow, linePath, type Overview } from "../api.js";
import { count, rate, share, stretch } from "../format.js";
import { Changes } from "../parts/changes.js";
import { type Act, Dialog, NumberControl, Toast, useActs } from "../parts/controls.js";
import { Events, Figure, State } from "../parts/glance.js";
import { usePoll } from "../poll.js";
import { conversion } from "../series.js";
import { say } from "../words.js";
import { Charts } from "./charts.js";
import { PageLook } from "./look.js";
import { Lost, type PageProps } from "./page.js";
import { Rules } from "./rules.js";

export function Line({ watch, id }: PageProps & { id: string }) {
  const line = usePoll<LineNow>(watch, linePath(id, "line"));
  const changes = usePoll<{ entries: Change[] }>(watch, `/audit?itemId=${encodeURIComponent(id)}&limit=20`, 3000);
  const room = usePoll<Overview>(watch, "/overview?limit=0", 3000);
  const [act, said] = useActs(() => {
    line.again();
    changes.again();
  });
  const { data, lost, missing } = line;
  if (missing) {
    return (
      <main>
        <p class="card">{say("notFound")}</p>
      </main>
    );
  }
  if (!data) return <Lost lost={lost} />;
  return (
    <main>
      <Lost lost={lost} />
      <Head line={data} act={act} watch={watch} />
      <Glance line={data} />
      <Charts watch={watch} line={data} />
      <div class="columns">
        <Controls line={data} act={act} watch={watch} quota={room.data?.tokenCountToMove ?? null} />
        <Rules item={data.item} save={(changes) => act(say("rulesSaved"), () => watch.api.send("PATCH", linePath(id, "policy"), changes))} />
        <PageLook look={data.item.policy.page} save={(page) => act(say("lookSaved"), () => watch.api.send("PATCH", linePath(id, "policy"), { page }))} />
      </div>
      <div class="columns">
        <Events events={data.events} ofLine />
        <section class="card" aria-labelledby="changes">
          <h2 id="changes">{say("changes")}</h2>
          <Changes changes={changes.data?.entries ?? []} ofLine />
        </section>
      </div>
      <Toast said={said} />
    </main>
  );
}

interface PartProps extends PageProps {
  line: LineNow;
  act: Act;
}

function Head({ line: { item, people }, act, watch: { api } }: PartProps) {
  const [asking, setAsking] = useState(false);
  const lever = (call: "pause" | "resume" | "reset") =>
    act(say(`${call}Done`, { n: count(people.waiting) }), () => api.send("POST", linePath(item.itemId, call)));
  return (
    <header class="line">
      <div>
        <h1>{item.itemName}</h1>
        <p>
          <code>{item.itemId}</code> <State state={item.lineState} />
        </p>
      </div>
      <div class="row">
        {item.paused ? (
          <button type="button" class="ready" onClick={() => void lever("resume")}>
            {say("resume")}
          </button>
        ) : (
          <button type="button" onClick={() => void lever("pause")}>
            {say("pause")}
          </button>
        )}
        <button type="button" class="danger" onClick={() => setAsking(true)}>
          {say("reset")}
        </button>
      </div>
      {asking && (
        <Dialog title={say("resetAsk")} close={() => setAsking(false)}>
          <p>{say("resetText", { n: count(people.waiting) })}</p>
          <div class="menu">
            <button type="button" autofocus onClick={() => setAsking(false)}>
              {say("cancel")}
            </button>
            <button type="button" class="danger" onClick={() => void lever("reset").then(() => setAsking(false))}>
              {say("resetYes", { n: count(people.waiting) })}
            </button>
          </div>
        </Dialog>
      )}
    </header>
  );
}

function Glance({ line: { people, item, admittedPerSecond, etaSeconds } }: { line: LineNow }) {
  const aside = [
    people.returning > 0 && say("returning", { n: count(people.returning) }),
    people.missed > 0 && say("missed", { n: count(people.missed) }),
  ].filter(Boolean);
  return (
    <>
      <dl class="figures">
        <Figure name={say("waiting")} hint={aside.join(" · ")}>
          <span id="waiting">{count(people.waiting)}</span>
        </Figure>
        <Figure name={say("inside")} hint={item.policy.maxActive === null ? "" : `/ ${count(item.policy.maxActive)}`}>
          <span id="inside">{count(people.entered)}</span>
        </Figure>
        <Figure name={say("perSecond")}>{rate(admittedPerSecond)}</Figure>
        <Figure name={say("eta")}>{stretch(etaSeconds)}</Figure>
        <Figure name={say("stock")}>
          <span id="stock">{count(item.remainCount)}</span>
        </Figure>
        <Figure name={say("abandoned")}>{count(people.abandoned)}</Figure>
        <Figure name={say("conversion")} hint={say("conversionHint")}>
          {share(conversion(people))}
        </Figure>
      </dl>
      <Front front={people.frontier} tail={people.tail} />
    </>
  );
}

/** How far the line has come of all the numbers it gave. */
function Front({ front, tail }: { front: number; tail: number }) {
  const text = say("frontText", { front: count(front), tail: count(tail) });
  return (
    <div class="front">
      <label for="front">{say("front")}</label>
      <progress id="front" max={Math.max(1, tail)} value={front} aria-valuetext={text} />
      <span>{text}</span>
    </div>
  );
}

function Controls({ line: { item }, act, watch: { api }, quota }: PartProps & { quota: number | null }) {
  const { itemName, remainCount, waitingQueueEnabled, policy } = item;
  const patch = (label: string, name: string, value: number | null) =>
    act(value === null ? say("valueRemoved", { what: label }) : say("valueSet", { what: label, n: count(value) }), () =>
      api.send("PATCH", linePath(item.itemId, "policy"), { [name]: value }),
    );
  const byHand = (change: object) => () =>
    api.send("POST", linePath(item.itemId, "manually"), { itemName, remainCount, waitingQueueEnabled, ...change });
  /** What a switch of the line does, and how it is taken back. */
  const enable = (isOpen: boolean) => ({ done: say(isOpen ? "lineOpened" : "lineClosed"), work: byHand({ waitingQueueEnabled: isOpen }) });
  const turn = (isOpen: boolean) => act(enable(isOpen).done, enable(isOpen).work, isOpen ? undefined : enable(true));
  return (
    <section class="card" aria-labelledby="controls">
      <h2 id="controls">{say("controls")}</h2>
      <div class="controls">
        <NumberControl
          label={say("lineQuota")}
          hint={say("lineQuotaHint", { n: quota === null ? "–" : count(quota) })}
          value={policy.tokensPerTick}
          optional
          max={1_000_000}
          set={(value) => patch(say("lineQuota"), "tokensPerTick", value)}
        />
        <NumberControl
          label={say("capacity")}
          hint={say("capacityHint")}
          value={policy.maxActive}
          optional
          min={1}
          max={1_000_000_000}
          set={(value) => patch(say("capacity"), "maxActive", value)}
        />
        <NumberControl
          label={say("stock")}
          hint={say("stockHint")}
          value={remainCount}
          max={4_294_967_295}
          set={(value) => act(say("valueSet", { what: say("stock"), n: count(value ?? 0) }), byHand({ remainCount: value }))}
        />
      </div>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          checked={waitingQueueEnabled}
          onChange={(event) => void turn(event.currentTarget.checked)}
        />
        {say("enabled")}
      </label>
    </section>
  );
}
