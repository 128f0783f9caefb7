import assert from "node:assert/strict";
import { mock, test, type TestContext } from "node:test";
import { readFileSync } from "node:fs";
import { ProblemError, type DrawRecord, type Ticket } from "../../../sdk/js/src/index.js";
import { DrawPanel } from "../src/draw-panel.js";
import type { Messages } from "../src/i18n.js";
import { TicketStorage } from "../src/ticket-storage.js";
import { checkDraw } from "../../../sdk/js/src/index.js";
import { type Verdict, verdictOf } from "../src/verdict.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;
const COMMITTED = { state: "COMMITTED", commitment: "c0" } as DrawRecord;
const WAITING = { token: "t", status: "WAITING", lineState: "OPEN", position: 3, cohortRank: 3 } as Ticket;
const LOBBY = { ...WAITING, lineState: "LOBBY", position: null, cohortRank: null, opensInMs: 600_000 } as Ticket;

function scriptedPanel(context: TestContext, draw: (token?: string) => DrawRecord) {
  mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => mock.timers.reset());
  const [requests, places, verdicts, notices] = [[] as unknown[], [] as string[], [] as (Verdict | null)[], [] as string[]];
  const room = {
    async draw(token?: string) {
      requests.push(token);
      return draw(token);
    },
  };
  const storage = new TicketStorage("concert", null, () => "kim");
  const view = {
    drawn: (text: string) => places.push(text),
    verdict: (_: string, verdict: Verdict | null, notice: string) => {
      verdicts.push(verdict);
      notices.push(notice);
    },
    announce() {},
    number: String,
  };
  const panel = new DrawPanel(room, storage, view, messages, async (token, expected) => {
    const record = await room.draw(token);
    return verdictOf(record, await checkDraw(record, token), expected, messages);
  });
  const pass = async (ms: number) => {
    mock.timers.tick(ms);
    for (let step = 0; step < 20; step++) await Promise.resolve();
  };
  return { panel, storage, pass, requests, places, verdicts, notices };
}

test("a page in the lobby notes the commitment once, at a random time", async (context) => {
  const { panel, storage, pass, requests, places } = scriptedPanel(context, () => COMMITTED);
  for (let event = 0; event < 3; event++) panel.show(LOBBY);
  assert.equal(requests.length, 0, "not together with all other pages");
  await pass(30_000);
  panel.show(LOBBY);
  await pass(30_000);
  assert.deepEqual([requests, storage.current.commitment], [[undefined], "c0"]);
  assert.deepEqual(new Set(places), new Set([""]));
});

test("a page in a lobby by arrival requests no draw", async (context) => {
  const { panel, pass, requests } = scriptedPanel(context, () => COMMITTED);
  panel.show({ ...LOBBY, position: 5 });
  await pass(60_000);
  assert.equal(requests.length, 0);
});

test("the drawn place is shown at once, and later how many took part", async (context) => {
  const { panel, pass, requests, places } = scriptedPanel(context, () => ({ ...COMMITTED, state: "DRAWN", cohortSize: 9 }) as DrawRecord);
  assert.equal(panel.show(WAITING), "Your place in the draw: 3");
  await pass(20_000);
  panel.show({ ...WAITING, position: 2 });
  await pass(60_000);
  assert.deepEqual([places.at(-1), requests.length], ["Your place in the draw: 3 of 9", 1]);
  assert.equal(panel.show({ ...WAITING, status: "ENTERABLE" }), "", "only while the ticket waits");
});

test("a record that cannot be loaded is no verdict", async (context) => {
  const { panel, verdicts, notices } = scriptedPanel(context, () => {
    throw new ProblemError("UNAVAILABLE", 503, "");
  });
  panel.show(WAITING);
  await panel.check();
  assert.deepEqual([verdicts.at(-1), notices.at(-1)], [null, messages.drawUnchecked]);
});
