import assert from "node:assert/strict";
import { test } from "node:test";
import type { Line, Ticket } from "../../../sdk/js/src/index.js";
import { blockedScreen, joinErrorScreen, outsideScreen, screenFor } from "../src/screen.js";
import { clock, countdownText, formatTime, localeOf, localTexts, type Messages } from "../src/i18n.js";
import { readFileSync } from "node:fs";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;

const eta = () => "around 8:41 PM";
const TICKET: Ticket = {
  itemId: "concert",
  userId: "kim",
  token: "t",
  status: "WAITING",
  position: 4,
  waitingCount: 10,
  lineState: "OPEN",
  opensAt: null,
  opensInMs: null,
  beaconRound: null,
  drawing: false,
  cohortRank: null,
  lane: null,
  etaSeconds: { p50: 170, p90: 290 },
  pollAfterMs: 1000,
  pass: null,
  passExpiresAt: null,
  entryUrl: null,
};

test("a waiting user sees position and estimate", () => {
  const screen = screenFor(TICKET, messages, eta);
  assert.equal(screen.kind, "waiting");
  assert.deepEqual(screen.place, { position: 4, ahead: 3, behind: 6, eta: "around 8:41 PM" });
});

test("what is left is shown with its chance while the line moves", () => {
  const stock = (chance: string, lineState = "OPEN") => screenFor({ ...TICKET, lineState, stockAhead: { left: 412, ahead: 379, chance } }, messages, eta).stock;
  assert.deepEqual(stock("ENOUGH"), { text: "{left} left, {ahead} people ahead of you.", left: 412, ahead: 379 });
  assert.match(stock("UNLIKELY")?.text ?? "", /probably not be enough/);
  assert.match(stock("A_CHANCE_OF_TOMORROW")?.text ?? "", /may not be enough/);
  assert.equal(stock("ENOUGH", "PAUSED"), undefined);
  assert.equal(screenFor(TICKET, messages, eta).stock, undefined);
});

test("a stopped line shows the reason and keeps the position", () => {
  for (const [lineState, headline] of [
    ["PAUSED", "The line is paused"],
    ["SOLD_OUT", "Sold out"],
    ["DISABLED", "The line is closed"],
    ["RECOVERING", "One moment, please"],
    ["HELD", "Entry is on hold"],
    ["A_STATE_OF_TOMORROW", "Entry is on hold"],
  ] as const) {
    const screen = screenFor({ ...TICKET, lineState, etaSeconds: null }, messages, eta);
    assert.deepEqual([screen.kind, screen.headline, screen.place?.position], ["still", headline, 4]);
  }
});

const OPENS_AT = "2100-01-01T11:00:00Z";

test("the lobby shows the countdown, and the place by arrival or that a draw decides it", () => {
  const lobby = { ...TICKET, lineState: "LOBBY", opensAt: OPENS_AT, opensInMs: 60_000 };
  const arrival = screenFor(lobby, messages, eta);
  assert.deepEqual([arrival.kind, arrival.lobby, arrival.place], ["lobby", { position: 4, count: 10 }, undefined]);
  assert.deepEqual(arrival.next, { kind: "opening", at: OPENS_AT, inMs: 60_000 });
  const draw = screenFor({ ...lobby, position: null }, messages, eta);
  assert.deepEqual(draw.lobby, { position: null, count: 10 });
  assert.match(draw.text, /takes part in a draw; arriving earlier gives no advantage/);
  const byHand = screenFor({ ...lobby, opensAt: null, opensInMs: null }, messages, eta);
  assert.deepEqual([byHand.next, byHand.text.startsWith("The line opens soon.")], [undefined, true]);
});

test("a draw with a public random number says so, before it begins and while the number is awaited", () => {
  const lobby = { ...TICKET, lineState: "LOBBY", position: null, opensAt: OPENS_AT, opensInMs: 60_000, beaconRound: 657_413 };
  assert.match(screenFor(lobby, messages, eta).text, /takes part in a draw.*public random number that does not exist yet/);
  for (const opensInMs of [9_000, null]) {
    const drawing = screenFor({ ...lobby, opensInMs, drawing: true }, messages, eta);
    assert.deepEqual([drawing.kind, drawing.headline, drawing.next], ["lobby", "The draw is taking place", undefined]);
    assert.deepEqual(drawing.lobby, { position: null, count: 10 });
  }
  assert.match(outsideScreen({ ...LINE, order: "draw", beaconRound: 657_413 }, messages).text, /public random number/);
});

test("a lobby that is stopped shows the reason, without a position if a draw decides it", () => {
  const screen = screenFor({ ...TICKET, lineState: "PAUSED", position: null }, messages, eta);
  assert.deepEqual([screen.kind, screen.headline, screen.place], ["still", "The line is paused", undefined]);
});

test("a closed line says that no other ticket is admitted", () => {
  const screen = screenFor({ ...TICKET, lineState: "CLOSED" }, messages, eta);
  assert.deepEqual([screen.kind, screen.headline, screen.place], ["closed", "This line has closed", undefined]);
});

const LINE: Line = {
  itemId: "concert",
  itemName: "Concert",
  lineState: "SCHEDULED",
  waitingCount: 0,
  enteredCount: 0,
  admittedPerSecond: 0,
  opensAt: OPENS_AT,
  opensInMs: 3_600_000,
  lobbyAt: "2100-01-01T10:30:00Z",
  lobbyInMs: 1_800_000,
  closesAt: null,
  order: "arrival",
  beaconRound: null,
  drawing: false,
  lanes: [],
};

test("a scheduled line counts down to its lobby, and says when it opens", () => {
  const screen = outsideScreen(LINE, messages);
  assert.deepEqual(screen.next, { kind: "lobby", at: LINE.lobbyAt, inMs: 1_800_000, opensAt: OPENS_AT });
  assert.doesNotMatch(screen.text, /draw/);
  assert.match(outsideScreen({ ...LINE, order: "draw" }, messages).text, /arriving earlier gives no advantage/);
  const byHand = outsideScreen({ ...LINE, opensAt: null, opensInMs: null }, messages);
  assert.deepEqual(byHand.next, { kind: "lobby", at: LINE.lobbyAt, inMs: 1_800_000 });
});

test("every end reason has its own text", () => {
  const ends = ["EXPIRED", "COMPLETED", "LEFT", "ABANDONED", "REPLACED"] as const;
  const scenes = ends.map((status) => screenFor({ ...TICKET, status, position: 0 }, messages, eta));
  assert.ok(scenes.every(({ kind }) => kind === "ended"));
  assert.equal(new Set(scenes.map(({ headline }) => headline)).size, ends.length);
});

test("a refused join shows the reason", () => {
  for (const [code, status, headline] of [
    ["SOLD_OUT", 409, "Sold out"],
    ["QUEUE_DISABLED", 409, "The line is closed"],
    ["LINE_CLOSED", 409, "This line is closed"],
    ["LINE_FULL", 429, "The line is full"],
    ["STORE_FULL", 503, "Very busy right now"],
    ["RATE_LIMITED", 429, "Too many requests"],
    ["UNAVAILABLE", 503, "We will be right back"],
    ["", 0, "We will be right back"],
    ["A_CODE_OF_TOMORROW", 403, "You could not join the line"],
    ["A_CODE_OF_TOMORROW", 503, "We will be right back"],
  ] as const) {
    const screen = joinErrorScreen(code, status, messages);
    assert.deepEqual([screen.kind, screen.headline], ["outside", headline], code);
    assert.ok(screen.text);
  }
  assert.equal(joinErrorScreen("ITEM_NOT_FOUND", 404, messages).kind, "missing");
});

test("a blocked user reads the reason, the reference and where to complain", () => {
  const notice = { reason: "Too many accounts.", rule: "6f1c0a52d0a94be1", until: null, contactUrl: "https://shop.example/help" };
  const screen = blockedScreen(notice, messages);
  assert.deepEqual([screen.kind, screen.headline, screen.contactUrl], ["outside", "Access is blocked", notice.contactUrl]);
  assert.match(screen.text, /^Too many accounts\. .*6f1c0a52d0a94be1$/);
  assert.equal("contactUrl" in blockedScreen({ ...notice, contactUrl: null }, messages), false);
  assert.equal(blockedScreen(null, messages).headline, "Access is blocked", "another tab received the problem");
});

test("durations are formatted as clocks", () => {
  assert.deepEqual([clock(61_000), clock(3_661_000), clock(-5)], ["1:01", "1:01:01", "0:00"]);
});

test("every state without a way on by itself has a link or a button", () => {
  const wayOf = ({ link, again }: ReturnType<typeof screenFor>) => [link, again];
  const ended = (status: Ticket["status"]) => wayOf(screenFor({ ...TICKET, status, position: 0 }, messages, eta));
  assert.deepEqual(ended("COMPLETED"), ["completed", "Join again"]);
  for (const status of ["EXPIRED", "LEFT", "ABANDONED", "REPLACED"] as const) assert.deepEqual(ended(status), ["home", "Join again"]);
  const halted = (lineState: string) => wayOf(screenFor({ ...TICKET, lineState }, messages, eta));
  assert.deepEqual([halted("SOLD_OUT"), halted("DISABLED"), halted("CLOSED")], [["soldOut", undefined], ["closed", undefined], ["closed", undefined]]);
  assert.deepEqual(halted("PAUSED"), [undefined, undefined], "a paused line continues by itself");
  const refused = (code: string) => wayOf(joinErrorScreen(code, 409, messages));
  assert.deepEqual([refused("SOLD_OUT"), refused("LINE_CLOSED"), refused("QUEUE_DISABLED")], [["soldOut", undefined], ["closed", undefined], ["closed", undefined]]);
  assert.deepEqual(refused("ITEM_NOT_FOUND"), [undefined, "Try again"]);
});

test("the operator's texts are those of the page's language, or else the default ones", () => {
  const korean = { name: "금요일", message: "8시에 입장합니다." };
  const page = { revision: "1", name: "Friday", message: "Doors at 8.", languages: { ko: korean } };
  assert.deepEqual(localTexts(page, "ko"), korean);
  assert.equal(localTexts(page, "th").message, "Doors at 8.");
  assert.equal(localTexts({ revision: "1", name: "Friday", message: null }, "ko").name, "Friday", "of an older server");
});

test("a countdown has days in words and the rest as a clock", () => {
  assert.deepEqual(
    [750_500, 3_600_000, 86_399_500, 90_061_000, 260_000_000].map((ms) => countdownText(ms, "en")),
    ["12:31", "1:00:00", "1 day 00:00:00", "1 day 01:01:01", "3 days 00:13:20"],
  );
  assert.equal(countdownText(260_000_000, "ko"), "3일 00:13:20");
});

test("a time has a date unless it is today by the server's clock", () => {
  const shown = (inMs: number, locale: string) => formatTime(OPENS_AT, inMs, locale, "Asia/Seoul").text.replace(/\u202f/g, " ");
  assert.equal(shown(60_000, "en"), "8:00 PM");
  assert.equal(shown(60_000, "en-GB"), "20:00");
  assert.equal(shown(60_000, "ko"), "20:00");
  assert.match(shown(86_400_000, "en"), /^Fri, Jan 1,? (at )?8:00 PM$/);
  assert.match(shown(86_400_000, "ko"), /^1월 1일 \(금\) 20:00$/);
  assert.equal(formatTime("2100-01-01T11:00:07Z", 0, "en-GB", "Asia/Seoul").text, "20:00:07");
  assert.equal(localeOf("en", ["ko-KR", "en-GB", "en-US"]), "en-GB");
  assert.equal(localeOf("en", ["ko-KR"]), "en");
});
