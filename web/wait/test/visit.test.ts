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
function scriptedVisit(context: TestContext, join: () => Ticket, state: () => LineState, line: () => Partial<Line> = () => ({}), atLoad: LineState = "") {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  context.after(() => mock.timers.reset());
  const [joins, looks, headlines, operatorMessages] = [[] as number[], [] as number[], [] as string[], [] as unknown[]];
  const grown: [number | null, number][] = [];
  let send: (ticket: Ticket) => void = () => {};
  const room = {
    async join() {
      joins.push(Date.now());
      return join();
    },
    async line() {
      looks.push(Date.now());
      return { lineState: state(), ...line() } as Line;
    },
    page: async () => ({ revision: "1", name: "", message: "Soon." }),
    leave: async () => {},
  };
  const follow = () => ({
    on(event: string, listener: (value: never) => void) {
      if (event === "ticket") send = listener as (ticket: Ticket) => void;
      return () => {};
    },
    stop() {},
  });
  const tabs = { follow, alone: (_: string, work: () => Promise<void>) => work() };
  const storage = new TicketStorage("concert", null, () => "kim");
  const view = {
    screen: ({ headline }: { headline: string }) => headlines.push(headline),
    lost() {},
    notice() {},
    grew: (from: number | null, to: number) => grown.push([from, to]),
    line() {},
    codeRefused() {},
    codeOffered() {},
    page: ({ message }: PageTexts) => operatorMessages.push(message),
  };
  const visit = new VisitController(room, storage, tabs, messages, view, () => "", atLoad);
  /** Lets time pass, with everything that becomes due meanwhile. */
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      mock.timers.tick(1_000);
      for (let step = 0; step < 20; step++) await Promise.resolve();
    }
  };
  return { visit, pass, joins, looks, headlines, operatorMessages, grown, send: (ticket: Ticket) => send(ticket) };
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

const LOBBY_AT = 600_000;

/** A line that is scheduled: its lobby opens 10 min after the test began, `lateMs` after its time. */
function scheduledVisit(context: TestContext, { order = "arrival", lateMs = 0, atLoad = "SCHEDULED" } = {}) {
  const clock = { begin: 0 };
  const since = () => Date.now() - clock.begin;
  const isOpen = () => since() >= LOBBY_AT + lateMs;
  const join = () => {
    if (!isOpen()) throw refused("NOT_OPEN_YET", 409);
    return { ...ticket(), lineState: "LOBBY", opensAt: "2100-01-01T20:00:00Z", opensInMs: 1 };
  };
  const times = () => {
    const [lobby, opening] = [LOBBY_AT - since(), LOBBY_AT + 1_800_000 - since()];
    return { order, lobbyAt: "2100-01-01T19:30:00Z", opensAt: "2100-01-01T20:00:00Z", lobbyInMs: isOpen() ? null : Math.max(0, lobby), opensInMs: opening } as Partial<Line>;
  };
  const visit = scriptedVisit(context, join, () => (isOpen() ? "LOBBY" : "SCHEDULED"), times, atLoad);
  clock.begin = Date.now();
  return { ...visit, since };
}

test("a page at a scheduled line joins once, soon after its lobby opens", async (context) => {
  const { visit, pass, joins, looks, headlines } = scheduledVisit(context);
  context.mock.method(Math, "random", () => 0.5);
  const begun = Date.now();
  await visit.begin();
  assert.equal(headlines.at(-1), "Not open yet");
  await pass(590);
  assert.equal(joins.length, 0);
  assert.ok(looks.length >= 20 && looks.length <= 45, `${looks.length} looks in ten minutes`);
  await pass(20);
  assert.equal(joins.length, 1, "one join per early page");
  const after = (joins[0] ?? 0) - begun - LOBBY_AT;
  assert.ok(after >= 2_000 && after <= 4_000, `${after} ms: half of the spread after the lobby`);
  assert.equal(headlines.at(-1), "You are in the lobby");
});

test("the pages of a scheduled line spread their joins over some seconds", async (context) => {
  for (const [order, most] of [["arrival", 5_000], ["draw", 15_000]] as const) {
    const delays: number[] = [];
    for (const random of [0, 0.25, 0.5, 0.75, 0.999]) {
      const { visit, pass, joins, since } = scheduledVisit(context, { order });
      const mocked = context.mock.method(Math, "random", () => random);
      await visit.begin();
      await pass(640);
      assert.equal(joins.length, 1);
      delays.push((joins[0] ?? 0) - (Date.now() - since()) - LOBBY_AT);
      mocked.mock.restore();
      mock.timers.reset();
    }
    assert.ok(delays.every((delay) => delay >= 0 && delay <= most + 1_000), `${order}: ${delays}`);
    assert.ok(Math.max(...delays) - Math.min(...delays) > most / 2, `${order}: ${delays}`);
  }
});

test("a page joins once although the lobby opens late, and asks less and less often", async (context) => {
  const { visit, pass, joins, looks, since } = scheduledVisit(context, { lateMs: 120_000 });
  await visit.begin();
  await pass(800);
  assert.equal(joins.length, 1);
  const late = looks.filter((look) => look > Date.now() - since() + LOBBY_AT);
  assert.ok(late.length >= 5 && late.length <= 16, `${late.length} looks in two minutes`);
});

test("a page that was rendered before the opening was set joins at most twice", async (context) => {
  const { visit, pass, joins, headlines } = scheduledVisit(context, { atLoad: "" });
  await visit.begin();
  assert.equal(joins.length, 1);
  await pass(1);
  assert.equal(headlines.at(-1), "Not open yet");
  await pass(640);
  assert.equal(joins.length, 2);
});

test("a closed line is polled, and not joined", async (context) => {
  const { visit, pass, joins, headlines } = scriptedVisit(context, ticket, () => "CLOSED", () => ({}), "CLOSED");
  await visit.begin();
  await pass(600);
  assert.equal(joins.length, 0);
  assert.equal(headlines.at(-1), "This line is closed");
});

test("the result of the draw is news once, and not after a reload", async (context) => {
  const drawn = () => ({ ...ticket(), cohortRank: 7 });
  const { visit, pass, headlines } = scriptedVisit(context, drawn, () => "OPEN");
  await visit.begin();
  await pass(5);
  assert.equal(headlines.at(-1), "The draw is done");
  await pass(6);
  assert.equal(headlines.at(-1), "You are next");
  await visit.join();
  assert.equal(headlines.at(-1), "You are next");
});

test("a position that grows is explained once, until the ticket is where it was", async (context) => {
  const { visit, grown, send } = scriptedVisit(context, () => ({ ...ticket(), position: 40 }), () => "OPEN");
  await visit.begin();
  for (const position of [39, 42, 41, 39, 38]) send({ ...ticket(), position });
  assert.deepEqual(grown, [[39, 42], [39, 41], [null, 39]]);
  send({ ...ticket(), token: "another", position: 90 });
  assert.equal(grown.length, 3, "a new ticket has a position of its own");
});
