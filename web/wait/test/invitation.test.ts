import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test, type TestContext } from "node:test";
import { type JoinOptions, type Line, type LineState, ProblemError, type Ticket } from "../../../sdk/js/src/index.js";
import type { Messages } from "../src/i18n.js";
import { InvitationPanel } from "../src/invitation-panel.js";
import type { Kind } from "../src/screen.js";
import { TicketStorage } from "../src/ticket-storage.js";
import { VisitController } from "../src/visit.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;
const GOOD = "GOOD-1";
const STANDARD: Ticket = {
  itemId: "concert",
  userId: "kim",
  token: "standard-7",
  status: "WAITING",
  position: 7,
  waitingCount: 9,
  lineState: "OPEN",
  opensAt: null,
  opensInMs: null,
  beaconRound: null,
  drawing: false,
  cohortRank: null,
  lane: null,
  etaSeconds: null,
  pollAfterMs: 1000,
  pass: null,
  passExpiresAt: null,
  entryUrl: null,
};
const MEMBER: Ticket = { ...STANDARD, token: "members-2", position: 2, waitingCount: 3, lane: "members" };
const LANES = [
  { name: "standard", waitingCount: 9, sharePercent: 70, first: false },
  { name: "members", waitingCount: 3, sharePercent: 30, first: false },
];

interface Script {
  state?: LineState;
  hasLanes?: boolean;
  /** The ticket that the browser has stored. */
  stored?: Ticket;
  /** Whether the user confirms to give up the place. */
  confirms?: boolean;
  join?: (code: string | undefined) => Ticket;
}

const refusal = (code: string, status: number) => new ProblemError(code, status, code);

/** A server with one good code. */
function answer(code: string | undefined): Ticket {
  if (code === undefined) return STANDARD;
  if (code !== GOOD) throw refusal("INVALID_CODE", 403);
  return MEMBER;
}

/** A page with a panel and a visit, as `main.ts` connects them. */
function page(context: TestContext, { state = "", hasLanes = true, stored, confirms = true, join = answer }: Script) {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  context.after(() => mock.timers.reset());
  const line = { state };
  const shown = { lane: "", isFormShown: false, isFormOpen: false, field: "", message: "", isError: false, kind: "joining" as Kind, token: "", questions: 0, announced: "" };
  const [joins, looks, follows] = [[] as (string | undefined)[], [] as number[], [] as string[]];
  const room = {
    async join(_: string, { code }: JoinOptions = {}) {
      joins.push(code);
      return join(code);
    },
    async line() {
      looks.push(Date.now());
      return { lineState: line.state, lanes: LANES } as unknown as Line;
    },
    page: async () => ({ revision: "1", name: "", message: null }),
    leave: async () => {},
  };
  let send: (ticket: Ticket) => void = () => {};
  const follow = (token: string) => {
    follows.push(token);
    return {
      on(event: string, listener: (value: never) => void) {
        if (event !== "ticket") return () => {};
        send = listener as (ticket: Ticket) => void;
        if (stored?.token === token) queueMicrotask(() => send(stored));
        return () => {};
      },
      stop() {},
    };
  };
  const tabs = { follow, alone: (_: string, work: () => Promise<void>) => work() };
  const storage = new TicketStorage("concert", null, () => "kim");
  if (stored) storage.keep(stored.token);
  const panel = new InvitationPanel(
    room,
    {
      lane: (text) => (shown.lane = text),
      invitation: (isShown) => (shown.isFormShown = isShown),
      fillCode: (code) => Object.assign(shown, { field: code, isFormOpen: true }),
      clearCode: () => Object.assign(shown, { field: "", isFormOpen: false }),
      codeBusy() {},
      codeMessage: (message, isError) => Object.assign(shown, { message, isError }),
      async confirmMove() {
        shown.questions++;
        return confirms;
      },
      announce: (text) => (shown.announced = text),
    },
    messages,
    hasLanes,
  );
  const redeem = (code: string) => visit.redeem(code);
  const visit: VisitController = new VisitController(room, storage, tabs, messages, {
    screen({ kind }, ticket) {
      Object.assign(shown, { kind, token: ticket?.token ?? "" });
      panel.show(kind, ticket, storage.current.code !== undefined);
    },
    lost() {},
    notice() {},
    grew() {},
    line: (seen) => panel.update(seen),
    codeRefused: (code, isJoined) => panel.refused(code, isJoined),
    codeOffered: (code) => void panel.offer(code, redeem),
    page() {},
  }, () => "", state);
  const settle = async () => {
    for (let step = 0; step < 40; step++) await Promise.resolve();
  };
  const pass = async (ms: number) => {
    mock.timers.tick(ms);
    await settle();
  };
  const begin = async (code?: string) => {
    if (code) visit.invite(code);
    await visit.begin();
    await settle();
  };
  return { visit, storage, line, shown, joins, looks, follows, pass, settle, begin, type: (code: string) => panel.submit(code, redeem), send: (ticket: Ticket) => send(ticket) };
}

test("a page that is opened with a code joins with it", async (context) => {
  const { begin, pass, shown, joins, storage } = page(context, {});
  await begin(GOOD);
  await pass(2_000);
  assert.deepEqual([joins, shown.token, shown.questions], [[GOOD], MEMBER.token, 0]);
  assert.match(shown.lane, /^You are in the line “members”.* About 30% of entries/);
  assert.equal(storage.current.code, undefined, "a code is used once");
});

test("a page that is opened with a bad code joins without it and says why, whether the line has lanes or not", async (context) => {
  for (const hasLanes of [true, false]) {
    const { begin, shown, joins, storage } = page(context, { hasLanes });
    await begin("BAD");
    assert.deepEqual([joins, shown.token, storage.current.code], [["BAD", undefined], STANDARD.token, undefined]);
    assert.deepEqual([shown.isFormShown, shown.isFormOpen, shown.field, shown.isError], [true, true, "BAD", true]);
    assert.equal(shown.message, `${messages.codeBad} ${messages.codeBadJoined}`);
    mock.timers.reset();
  }
});

test("a page whose join is refused although its code is bad does not say that it joined", async (context) => {
  const join = (code?: string) => {
    throw code ? refusal("INVALID_CODE", 403) : refusal("LINE_FULL", 429);
  };
  const { begin, pass, shown, joins } = page(context, { join });
  await begin("BAD");
  assert.deepEqual([joins, shown.kind, shown.message], [["BAD", undefined], "outside", messages.codeBad]);
  await pass(60_000);
  assert.ok(joins.length > 2 && joins.lastIndexOf("BAD") === 0, "a refused code is not sent again");
});

test("a code is kept until the line accepts joins", async (context) => {
  const { begin, pass, shown, joins, line } = page(context, { state: "SCHEDULED" });
  await begin(GOOD);
  assert.deepEqual([joins, shown.kind, shown.lane], [[], "scheduled", messages.codeKept]);
  line.state = "LOBBY";
  await pass(60_000);
  assert.deepEqual([joins, shown.token], [[GOOD], MEMBER.token]);
});

test("a code that is typed before the line accepts joins is kept, and no form is shown at a line that has closed", async (context) => {
  const scheduled = page(context, { state: "SCHEDULED" });
  await scheduled.begin();
  assert.deepEqual([scheduled.shown.isFormShown, scheduled.shown.lane], [true, ""]);
  await scheduled.type(` ${GOOD} `);
  assert.deepEqual([scheduled.shown.questions, scheduled.shown.lane, scheduled.storage.current.code], [0, messages.codeKept, GOOD]);
  mock.timers.reset();
  const closed = page(context, { state: "CLOSED" });
  await closed.begin(GOOD);
  assert.deepEqual([closed.shown.kind, closed.shown.isFormShown, closed.shown.lane], ["outside", false, ""]);
});

test("a user who waits changes lines after a confirmation", async (context) => {
  const { begin, type, shown, joins, storage } = page(context, { stored: STANDARD });
  await begin();
  assert.deepEqual([joins, shown.isFormShown], [[], true]);
  await type("");
  assert.deepEqual([shown.message, shown.questions], [messages.codeEmpty, 0]);
  await type("GOOD -1\n");
  assert.deepEqual([joins, shown.questions, shown.token, storage.current.token], [[GOOD], 1, MEMBER.token, MEMBER.token]);
  assert.deepEqual([shown.message, shown.isFormOpen, shown.field], ["", false, ""]);
  assert.equal(shown.announced, "You are now in the line “members”.");
});

test("a user who does not confirm stays, and nothing is sent", async (context) => {
  const { begin, type, shown, joins } = page(context, { stored: STANDARD, confirms: false });
  await begin();
  await type(GOOD);
  assert.deepEqual([joins, shown.questions, shown.token], [[], 1, STANDARD.token]);
});

test("a user who waits is asked before the code of a link is used", async (context) => {
  for (const confirms of [true, false]) {
    const { begin, settle, visit, shown, joins, storage } = page(context, { stored: STANDARD, confirms });
    await begin(GOOD);
    await settle();
    assert.deepEqual([shown.questions, joins], [1, confirms ? [GOOD] : []]);
    assert.equal(storage.current.code, undefined, "the question is not repeated after a reload");
    if (!confirms) assert.deepEqual([shown.isFormOpen, shown.field], [true, GOOD]);
    // The link is opened again in the same tab.
    visit.invite(GOOD);
    await settle();
    assert.equal(shown.questions, 2);
    mock.timers.reset();
  }
});

test("a bad code leaves the place in line as it is", async (context) => {
  const { begin, type, shown, storage, send } = page(context, { stored: STANDARD });
  await begin();
  await type("BAD");
  assert.deepEqual([shown.message, shown.isError], [`${messages.codeBad} ${messages.codeBadKeep}`, true]);
  assert.deepEqual([shown.token, storage.current.token], [STANDARD.token, STANDARD.token]);
  send({ ...STANDARD, position: 6 });
  assert.equal(shown.isFormShown, true);
  mock.timers.reset();
  const plain = page(context, { hasLanes: false });
  await plain.begin("BAD");
  await plain.type("ALSO-BAD");
  plain.send({ ...STANDARD, position: 6 });
  assert.deepEqual([plain.shown.message, plain.shown.isFormShown], [`${messages.codeBad} ${messages.codeBadKeep}`, true]);
});

test("a code that the server cannot parse is a bad code, and an outage is not", async (context) => {
  for (const [code, status, message] of [
    ["INVALID_REQUEST", 400, `${messages.codeBad} ${messages.codeBadKeep}`],
    ["UNAVAILABLE", 503, messages.codeFailed],
  ] as const) {
    const join = () => {
      throw refusal(code, status);
    };
    const { begin, type, shown, follows } = page(context, { stored: STANDARD, join });
    await begin();
    await type(GOOD);
    assert.deepEqual([shown.message, shown.token], [message, STANDARD.token]);
    // The end of the old ticket may have been hidden, if the server moved the user and its response was lost.
    assert.equal(follows.length, status === 503 ? 2 : 1);
    mock.timers.reset();
  }
});

test("a code of the user's own line changes nothing and says so", async (context) => {
  const { begin, type, shown } = page(context, { stored: MEMBER });
  await begin();
  await type(GOOD);
  assert.deepEqual([shown.message, shown.token], [messages.codeSame, MEMBER.token]);
});

test("the end of the old ticket is not shown while the user changes lines", async (context) => {
  let end: (ticket: Ticket) => void = () => {};
  const join = () => {
    end({ ...STANDARD, status: "REPLACED" });
    return MEMBER;
  };
  const { begin, type, shown, send } = page(context, { stored: STANDARD, join });
  const kinds: Kind[] = [];
  end = (ticket) => {
    send(ticket);
    kinds.push(shown.kind);
  };
  await begin();
  await type(GOOD);
  assert.deepEqual([kinds, shown.kind, shown.token], [["waiting"], "waiting", MEMBER.token]);
  send({ ...MEMBER, status: "REPLACED" });
  assert.equal(shown.kind, "ended");
});

test("a user whose ticket has ended joins with the code", async (context) => {
  const { begin, type, shown, joins } = page(context, { stored: { ...STANDARD, status: "EXPIRED" } });
  await begin();
  assert.deepEqual([shown.kind, shown.isFormShown], ["ended", true]);
  await type(GOOD);
  assert.deepEqual([joins, shown.questions, shown.token], [[GOOD], 0, MEMBER.token]);
});

test("the shares are requested about once per minute while the user waits, and never for a line without lanes", async (context) => {
  const { begin, pass, send, looks, shown } = page(context, {});
  await begin();
  for (let second = 0; second < 600; second++) await pass(1_000);
  assert.ok(looks.length >= 8 && looks.length <= 11, `${looks.length} requests in ten minutes`);
  assert.match(shown.lane, /^About 30% of entries go to invited visitors/);
  send({ ...STANDARD, status: "ENTERABLE" });
  const before = looks.length;
  await pass(600_000);
  assert.deepEqual([looks.length, shown.lane, shown.isFormShown], [before, "", false]);
  mock.timers.reset();
  const plain = page(context, { hasLanes: false });
  await plain.begin();
  await plain.pass(600_000);
  assert.deepEqual([plain.looks.length, plain.shown.isFormShown], [0, false]);
  mock.timers.reset();
  // The ticket is admitted, ends and waits again while the first request is under way.
  const busy = page(context, {});
  await busy.begin();
  mock.timers.tick(2_000);
  busy.send({ ...STANDARD, status: "ENTERABLE" });
  busy.send(STANDARD);
  for (let second = 0; second < 600; second++) await busy.pass(1_000);
  assert.ok(busy.looks.length >= 8 && busy.looks.length <= 12, `${busy.looks.length} requests in ten minutes`);
});
