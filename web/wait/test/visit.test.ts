import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test, type TestContext } from "node:test";
import { type Line, type LineState, type PageTexts, ProblemError, type Ticket } from "../../../sdk/js/src/index.js";
import { TicketStorage } from "../src/ticket-storage.js";
import { VisitController } from "../src/visit.js";
import type { Messages } from "../src/i18n.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;
const refused = (code: string, status: number, retryAfterMs: number | null = null) => new ProblemError(code, status, code, retryAfterMs);

/** A visit to a line with scripted responses and a simulated clock. */
function scriptedVisit(context: TestContext, join: () => Ticket, state: () => LineState) {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  context.after(() => mock.timers.reset());
  const [joins, looks, headlines, operatorMessages] = [[] as number[], [] as number[], [] as string[], [] as unknown[]];
  const room = {
    async join() {
      joins.push(Date.now());
      return join();
    },
    async line() {
      looks.push(Date.now());
      return { lineState: state() } as Line;
    },
    page: async () => ({ revision: "1", name: "", message: "Soon." }),
    leave: async () => {},
  };
  const tabs = { follow: () => ({ on: () => () => {}, stop() {} }), alone: (_: string, work: () => Promise<void>) => work() };
  const storage = new TicketStorage("concert", null, () => "kim");
  const view = {
    screen: ({ headline }: { headline: string }) => headlines.push(headline),
    lost() {},
    notice() {},
    page: ({ message }: PageTexts) => operatorMessages.push(message),
  };
  const visit = new VisitController(room, storage, tabs, messages, view);
  /** Lets time pass, with everything that becomes due meanwhile. */
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      mock.timers.tick(1_000);
      for (let step = 0; step < 20; step++) await Promise.resolve();
    }
  };
  return { visit, pass, joins, looks, headlines, operatorMessages };
}

const ticket = () => ({ token: "t", status: "WAITING", position: 1, waitingCount: 1, lineState: "OPEN", etaSeconds: null }) as Ticket;

test("a page at a closed line joins once, then polls rarely, and joins when the line opens", async (context) => {
  let state: LineState = "DISABLED";
  const { visit, pass, joins, looks, headlines, operatorMessages } = scriptedVisit(
    context,
    () => {
      if (state === "DISABLED") throw refused("QUEUE_DISABLED", 409);
      return ticket();
    },
    () => state,
  );
  await visit.begin();
  await pass(600);
  assert.equal(joins.length, 1, "no join while the line can say that it is closed");
  assert.ok(looks.length >= 18 && looks.length <= 45, `${looks.length} looks in ten minutes`);
  const gaps = looks.slice(5).map((look, n) => look - (looks[n + 4] ?? 0));
  assert.ok(gaps.every((gap) => gap >= 15_000 && gap <= 31_000), gaps.join(" "));
  assert.ok(new Set(gaps).size > 3, "and not all pages at the same time");
  assert.equal(headlines.at(-1), "The line is closed");
  assert.equal(operatorMessages.at(-1), "Soon.");
  state = "OPEN";
  await pass(31);
  assert.equal(joins.length, 2);
  assert.equal(headlines.at(-1), "You are next");
});

test("an open line that refuses joins gets one join per 30 s", async (context) => {
  const closed = () => {
    throw refused("QUEUE_DISABLED", 409);
  };
  const { visit, pass, joins } = scriptedVisit(context, closed, () => "OPEN");
  await visit.begin();
  await pass(600);
  const gaps = joins.slice(2).map((join, n) => join - (joins[n + 1] ?? 0));
  assert.ok(gaps.length > 5 && gaps.every((gap) => gap >= 30_000), gaps.join(" "));
});

test("joins at a full line back off and respect Retry-After", async (context) => {
  const full = () => {
    throw refused("LINE_FULL", 429, 20_000);
  };
  const { visit, pass, joins, headlines } = scriptedVisit(context, full, () => "OPEN");
  await visit.begin();
  await pass(600);
  const gaps = joins.slice(1).map((join, n) => join - (joins[n] ?? 0));
  assert.ok(gaps.length > 10 && gaps.every((gap) => gap >= 20_000 && gap <= 31_000), gaps.join(" "));
  assert.equal(headlines.at(-1), "The line is full");
});

test("a missing item is not requested again", async (context) => {
  const missing = () => {
    throw refused("ITEM_NOT_FOUND", 404);
  };
  const { visit, pass, joins, looks } = scriptedVisit(context, missing, () => "OPEN");
  await visit.begin();
  await pass(600);
  assert.deepEqual([joins.length, looks.length], [1, 0]);
});
