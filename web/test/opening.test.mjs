// Openings, lobbies and draws on the waiting page, in a real browser against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BrowserSession, chromiumPath, expectAccessible, expectPosition, expectScreen, launch, position } from "./browser.mjs";
import { DaegiProcess, eventually } from "./daegi.mjs";

const path = chromiumPath("the opening of a line");
const PAGES = 10;
let [browser, daegi] = [];
let items = 0;

const inMs = (ms) => new Date(Date.now() + ms).toISOString();

/** Creates an item with an opening. Its line admits one ticket, so that the others keep their positions. */
async function opening(times) {
  const item = `opening-${++items}`;
  await daegi.stock(item, 1000);
  await daegi.policy(item, { tokensPerTick: 1, maxActive: 1, opening: { opensAt: null, lobbyAt: null, closesAt: null, order: "arrival", ...times } });
  return item;
}

/** A user with a browser of its own. */
async function visit(item, options) {
  const session = await BrowserSession.open(browser, [daegi.origin], options);
  session.joins = [];
  session.context.on("request", (request) => {
    if (request.method() === "POST") session.joins.push(request.url());
  });
  session.page = await session.open(daegi.page(item));
  return session;
}

const expectHeadline = (page, text) => page.getByRole("heading", { level: 1, name: text }).waitFor({ timeout: 40_000 });
const screenOf = (page) => page.locator("#screen").getAttribute("data-screen");
const end = (sessions) => Promise.all(sessions.map((session) => session.end()));

/** Records in the page when it leaves the lobby. */
const recordOpening = (page) =>
  page.evaluate(() => {
    const screen = document.getElementById("screen");
    new MutationObserver(() => {
      if (screen.dataset.screen !== "lobby") globalThis.leftLobbyAt ??= Date.now();
    }).observe(screen, { attributes: true });
  });

/** The countdown in seconds. */
async function countdown(page) {
  const parts = (await page.locator("#opens-in").textContent()).split(":").map(Number);
  return parts.reduce((seconds, part) => seconds * 60 + part, 0);
}

/** Position of a waiting page; 0 if it is admitted. */
async function placeOf(page) {
  return (await screenOf(page)) === "turn" ? 0 : position(page);
}

/** Waits until all pages left the lobby. The first is admitted. */
async function expectOpened(pages) {
  await Promise.all(pages.map((page) => page.waitForFunction(() => !["lobby", "scheduled"].includes(document.getElementById("screen").dataset.screen))));
  await eventually("one page is admitted, and the others wait behind it", async () => {
    const places = await Promise.all(pages.map(placeOf));
    return places.filter((place) => place === 0).length === 1 && new Set(places).size === pages.length;
  });
}

describe("an opening", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("ten pages wait in the lobby, the line opens by itself at the second, and no late page overtakes", async () => {
    const opensAt = inMs(20_000);
    const item = await opening({ opensAt });
    const sessions = [];
    for (let n = 1; n <= PAGES; n++) {
      const session = await visit(item);
      await expectScreen(session.page, "lobby");
      await session.page.locator("#lobby-position").filter({ hasText: new RegExp(`^${n}$`) }).waitFor();
      sessions.push(session);
    }
    const pages = sessions.map(({ page }) => page);
    assert.ok(Date.now() < Date.parse(opensAt), "the machine is fast enough for this test");
    assert.match(await pages[0].locator("#opens-label").textContent(), /^Opens at /);
    await expectAccessible(pages[0], "the lobby");
    await Promise.all(pages.map(recordOpening));
    // One page reloads just before the opening, one just after it, and a newcomer arrives 150 ms after it.
    await eventually("the opening is near", async () => Date.now() > Date.parse(opensAt) - 300, 60_000);
    const reload = pages[4].reload();
    await eventually("the opening", async () => Date.now() > Date.parse(opensAt) + 150);
    const [late] = await Promise.all([visit(item), reload, pages[7].reload()]);
    await expectOpened([...pages, late.page]);
    const places = await Promise.all([...pages, late.page].map(placeOf));
    assert.deepEqual(places, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const page of pages.filter((_, n) => n !== 4 && n !== 7)) {
      const lateMs = (await page.evaluate(() => globalThis.leftLobbyAt)) - Date.parse(opensAt);
      assert.ok(lateMs >= -50 && lateMs < 1_500, `opened ${lateMs} ms after its time`);
    }
    for (const { joins } of [...sessions, late]) assert.equal(joins.length, 1);
    await end([...sessions, late]);
  });

  test("pages at a scheduled line show when the lobby opens, and join once", async () => {
    const lobbyAt = inMs(8_000);
    const item = await opening({ lobbyAt, opensAt: inMs(60_000) });
    const sessions = await Promise.all(Array.from({ length: 4 }, () => visit(item)));
    const [{ page }] = sessions;
    await expectHeadline(page, "Not open yet");
    assert.match(await page.locator("#opens-label").textContent(), /^The lobby opens at /);
    const left = (Date.parse(lobbyAt) - Date.now()) / 1000;
    assert.ok(Math.abs((await countdown(page)) - left) <= 2, "the countdown ends at the lobby");
    await expectAccessible(page, "a scheduled line");
    assert.deepEqual(sessions.flatMap(({ joins }) => joins), [], "no page joins before the lobby");
    for (const session of sessions) await expectHeadline(session.page, "You are in the lobby");
    assert.ok(Date.now() < Date.parse(lobbyAt) + 9_000, "within the spread of 5 s");
    for (const { joins } of sessions) assert.equal(joins.length, 1);
    assert.equal((await daegi.line(item)).waitingCount, 4);
    await end(sessions);
  });

  for (const offsetMs of [600_000, -600_000]) {
    test(`the countdown is right on a clock that is ${offsetMs / 60_000} min off`, async () => {
      const opensAt = inMs(120_000);
      const item = await opening({ opensAt });
      const session = await BrowserSession.open(browser, [daegi.origin], { timezoneId: "Asia/Seoul", locale: "en-GB" });
      await session.context.addInitScript((offset) => {
        const RealDate = Date;
        globalThis.Date = class extends RealDate {
          constructor(...args) {
            super(...(args.length > 0 ? args : [RealDate.now() + offset]));
          }
          static now() {
            return RealDate.now() + offset;
          }
        };
      }, offsetMs);
      const page = await session.open(daegi.page(item));
      await expectScreen(page, "lobby");
      const isWrong = await page.evaluate((now) => Math.abs(Date.now() - now) > 500_000, Date.now());
      assert.ok(isWrong, "the clock of the page is wrong");
      for (let look = 0; look < 3; look++) {
        const left = (Date.parse(opensAt) - Date.now()) / 1000;
        const shown = await countdown(page);
        assert.ok(Math.abs(shown - left) < 1.5, `${shown} s are shown, ${left} s are left`);
        await page.locator("#opens-in").filter({ hasNotText: await page.locator("#opens-in").textContent() }).waitFor();
      }
      const time = new Intl.DateTimeFormat("en-GB", { timeZone: "Asia/Seoul", hour: "numeric", minute: "2-digit", second: "2-digit" }).format(Date.parse(opensAt));
      assert.ok((await page.locator("#opens-label").textContent()).startsWith(`Opens at ${time.replace(/:00$/, "")}`));
      // A second tab gets the ticket of the first one, which is some seconds old.
      const second = await session.open(daegi.page(item));
      await expectScreen(second, "lobby");
      const left = (Date.parse(opensAt) - Date.now()) / 1000;
      assert.ok(Math.abs((await countdown(second)) - left) < 1.5, "in a second tab too");
      await session.end();
    });
  }

  test("a draw orders the lobby, and each page can check it", async () => {
    const opensAt = inMs(20_000);
    const item = await opening({ opensAt, order: "draw" });
    const sessions = await Promise.all(Array.from({ length: PAGES }, () => visit(item)));
    const pages = sessions.map(({ page }) => page);
    for (const page of pages) await expectScreen(page, "lobby");
    assert.match(await pages[0].locator("#text").textContent(), /takes part in a draw; arriving earlier gives no advantage/);
    assert.equal(await pages[0].locator("#lobby-position").isVisible(), false, "there is no place before the draw");
    await pages[0].locator("#lobby-count").filter({ hasText: `${PAGES}` }).waitFor();
    await expectAccessible(pages[0], "the lobby of a draw");
    const noted = (page) => page.evaluate((key) => JSON.parse(localStorage.getItem(key)).commitment, `daegi:${item}`);
    await eventually("the pages note the commitment", async () => (await Promise.all(pages.map(noted))).every(Boolean), 30_000);
    await eventually("the opening", async () => Date.now() > Date.parse(opensAt) + 150, 60_000);
    const late = await visit(item);
    await expectOpened([...pages, late.page]);
    assert.equal(await placeOf(late.page), PAGES, "who comes later stands behind the draw");
    assert.equal(await late.page.locator("#draw").isVisible(), false);

    const places = await Promise.all(pages.map(placeOf));
    const index = places.indexOf(5);
    const page = pages[index];
    assert.match(await page.locator("#drawn").textContent(), /^Your place in the draw: 6/);
    await page.reload();
    await expectPosition(page, 5);
    const verdict = page.locator("#verdict-text");
    await page.getByRole("button", { name: "Check the draw" }).click();
    await verdict.filter({ hasText: "The draw is correct" }).waitFor();
    assert.equal(await verdict.getAttribute("data-verdict"), "good");
    await page.locator("#findings summary").click();
    await page.getByText("This page noted the seal").waitFor();
    await expectAccessible(page, "a correct draw");

    // One altered byte in any hash of the record turns the verdict red, with a reason.
    const ALTER = {
      commitment: /secret|seal/,
      reveal: /secret/,
      cohortRoot: /order|list/,
      seed: /order/,
      leaf: /list/,
      path: /list/,
    };
    for (const [field, reason] of Object.entries(ALTER)) {
      await alterRecord(sessions[index], field);
      await page.getByRole("button", { name: "Check the draw" }).click();
      await verdict.filter({ hasText: "The draw could not be confirmed" }).waitFor();
      assert.equal(await verdict.getAttribute("data-verdict"), "bad");
      assert.match(await verdict.textContent(), reason, field);
      await sessions[index].context.unroute("**/draw?proof");
      await page.getByRole("button", { name: "Check the draw" }).click();
      await verdict.filter({ hasText: "The draw is correct" }).waitFor();
    }
    await alterRecord(sessions[index], "seed");
    await page.getByRole("button", { name: "Check the draw" }).click();
    await verdict.filter({ hasText: "The draw could not be confirmed" }).waitFor();
    await expectAccessible(page, "a draw that is not correct");
    for (const { joins } of [...sessions, late]) assert.equal(joins.length, 1);
    await end([...sessions, late]);
  });

  test("a line that an operator opens says so, and the page continues by itself", async () => {
    const item = await opening({ order: "draw" });
    const session = await visit(item, { locale: "ko-KR" });
    await expectHeadline(session.page, "대기실에 입장하셨습니다");
    assert.match(await session.page.locator("#text").textContent(), /^곧 오픈합니다/);
    assert.equal(await session.page.locator("#opens").isVisible(), false);
    await expectAccessible(session.page, "a lobby without a time");
    await daegi.admin("POST", `${item}/open`);
    await expectScreen(session.page, "turn");
    await session.end();
  });

  test("a line that closes says so to those who wait, and to newcomers", async () => {
    const item = await opening({ opensAt: inMs(3_000), closesAt: inMs(12_000) });
    const [first, second] = [await visit(item), await visit(item)];
    await expectScreen(first.page, "turn");
    await expectScreen(second.page, "waiting");
    await expectHeadline(second.page, "This line has closed");
    assert.match(await second.page.locator("#text").textContent(), /no more people enter/);
    await expectAccessible(second.page, "a line that has closed");
    await expectScreen(first.page, "turn");
    const late = await visit(item);
    await expectHeadline(late.page, "This line is closed");
    await expectAccessible(late.page, "a closed line for a newcomer");
    assert.equal(late.joins.length, 0);
    await end([first, second, late]);
  });

  test("the countdown is not announced each second", async () => {
    const item = await opening({ opensAt: inMs(16_000) });
    const session = await visit(item);
    await expectScreen(session.page, "lobby");
    await session.page.evaluate(() => {
      globalThis.announced = [];
      new MutationObserver(() => globalThis.announced.push(document.getElementById("said").textContent)).observe(document.getElementById("said"), { childList: true });
    });
    await expectScreen(session.page, "turn");
    const announced = await session.page.evaluate(() => globalThis.announced);
    assert.match(announced[0], /^Opens at .*10 seconds to go$/);
    assert.match(announced.at(-1), /^It is your turn/);
    assert.ok(announced.length <= 3, announced.join(" | "));
    await session.end();
  });

  test("without scripts the page says when to come back, and continues after the opening", async () => {
    const lobbyAt = inMs(3_000);
    const item = await opening({ lobbyAt, opensAt: inMs(10_000) });
    const session = await visit(item, { javaScriptEnabled: false });
    await expectHeadline(session.page, "Not open yet");
    await eventually("the lobby", async () => Date.now() > Date.parse(lobbyAt) + 500);
    await session.page.reload();
    await session.page.getByRole("button", { name: "Join the line" }).click();
    await expectHeadline(session.page, "You are in the lobby");
    assert.equal(await session.page.locator(".still strong").textContent(), "1");
    await expectHeadline(session.page, "It is your turn");
    await session.end();
  });
});

/** Alters one byte of a field in the record that this session receives. */
async function alterRecord(session, field) {
  const alter = (hex) => (hex[0] === "0" ? "1" : "0") + hex.slice(1);
  await session.context.route("**/draw?proof", async (route) => {
    const response = await route.fetch();
    const record = await response.json();
    if (field === "path") record.ticket.path[0] = alter(record.ticket.path[0]);
    else if (field === "leaf") record.ticket.leaf = alter(record.ticket.leaf);
    else record[field] = alter(record[field]);
    await route.fulfill({ response, json: record });
  });
}
