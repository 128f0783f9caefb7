// Openings in the operator's console, in a real browser, against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, eventually, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("openings in the console");
const HOUR = 3_600_000;
let [browser, daegi] = [];
let items = 0;

/** Creates an item for one test; its line admits one user per tick unless the policy says otherwise. */
async function line(policy = {}) {
  const item = `opening-${++items}`;
  await daegi.stock(item, 1000, "Friday 8 pm concert");
  await daegi.policy(item, { graceSeconds: 0, tokensPerTick: null, ...policy });
  return item;
}

const inMs = (ms) => new Date(Date.now() + ms).toISOString();

/** A time as the operator types it, in UTC, which is the time zone of the sessions here. */
const typed = (ms) => inMs(ms).slice(0, 16);

async function lineInConsole(item, options = {}, prepare = undefined) {
  const session = await BrowserSession.open(browser, [daegi.internal], { timezoneId: "UTC", ...options });
  await prepare?.(session.context);
  const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
  await page.locator("header.top").waitFor();
  await page.goto(`${daegi.internal}/admin/#/line/${item}`);
  await page.locator(".opening").waitFor();
  const card = page.locator(".opening");
  const toast = (text) => page.getByRole("status").filter({ hasText: text }).waitFor();
  const state = (text) => page.locator("header.line .state").filter({ hasText: text }).waitFor();
  const button = (name) => card.getByRole("button", { name, exact: true });
  const answer = (name) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
  return { session, page, card, toast, state, button, answer };
}

const figureOf = async (page, id) => Number((await page.locator(`#${id}`).textContent()).replaceAll(",", ""));
const becomes = (page, id, wanted) => eventually(`${id} is ${wanted}`, async () => (await figureOf(page, id)) === wanted);

describe("openings in the console", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("an opening is planned in the operator's time zone, and its lobby is watched", async () => {
    const item = await line();
    const { session, page, card, toast, state, button } = await lineInConsole(item, { timezoneId: "Asia/Seoul" });
    await button("Plan an opening…").click();
    await card.getByText("Asia/Seoul (GMT+9)").waitFor();
    const [opens, closes] = [typed(11 * HOUR), typed(14 * HOUR)];
    await card.getByLabel("Line opens").fill(opens);
    await card.getByLabel("Line closes").fill(closes);
    await card.getByRole("radio", { name: "By draw" }).check();
    await card.getByText(/^Lobby opens immediately, opens .*\d\d:\d\d in draw order, closes .*\d\d:\d\d\.$/).waitFor();
    await expectAccessible(page, "the form of an opening");
    await button("Plan opening").click();
    await toast(/Opening planned for .*\d\d:\d\d\. 0 people in the lobby\./);
    await state("Lobby");
    const { policy, draw } = await daegi.admin("GET", item);
    assert.equal(Date.parse(policy.opening.opensAt), Date.parse(`${opens}:00+09:00`));
    assert.equal(Date.parse(policy.opening.closesAt), Date.parse(`${closes}:00+09:00`));
    assert.deepEqual([policy.opening.order, policy.opening.lobbyAt], ["draw", null]);
    assert.equal(await page.locator("#commitment").textContent(), draw.commitment);
    assert.match(draw.commitment, /^[0-9a-f]{64}$/);
    await daegi.joinOthers(item, 5);
    await becomes(page, "lobby", 5);
    await card.getByRole("timer").filter({ hasText: /^1:5[89]:\d\d$/ }).waitFor();
    assert.equal((await daegi.line(item)).enteredCount, 0, "no user is admitted from the lobby");
    await expectAccessible(page, "the lobby of a draw");
    await session.end();
  });

  test("the countdown follows the server's clock, and the line opens at its time", async () => {
    const item = await line();
    await daegi.policy(item, { opening: { opensAt: inMs(9_000), order: "draw" } });
    await daegi.joinOthers(item, 3);
    const { opensAt } = (await daegi.admin("GET", item)).policy.opening;
    const tenMinutesAhead = (context) =>
      context.addInitScript(() => {
        const Real = Date;
        const now = () => Real.now() + 600_000;
        globalThis.Date = class extends Real {
          constructor(...given) {
            super(...(given.length ? given : [now()]));
          }
          static now() {
            return now();
          }
        };
      });
    const { session, page, card, state } = await lineInConsole(item, {}, tenMinutesAhead);
    const timer = card.getByRole("timer");
    await timer.filter({ hasText: /^00:0\d$/ }).waitFor();
    const left = (Date.parse(opensAt) - Date.now()) / 1000;
    const seconds = Number((await timer.textContent()).slice(3));
    assert.ok(Math.abs(seconds - left) < 2, `${seconds} s are shown, ${left} s are left`);
    await state("Open");
    await becomes(page, "cohort", 3);
    await card.getByText("Opened", { exact: true }).waitFor();
    const { openedAt } = await daegi.admin("GET", item);
    assert.ok(Date.parse(openedAt) >= Date.parse(opensAt), `opened at ${openedAt}, planned for ${opensAt}`);
    await eventually("all are admitted", async () => (await daegi.line(item)).enteredCount === 3);
    await session.end();
  });

  test("the line opens now after a question that says how many are in the lobby", async () => {
    const item = await line({ opening: { order: "draw" } });
    await daegi.joinOthers(item, 4);
    const { session, page, card, toast, button, answer } = await lineInConsole(item);
    await becomes(page, "lobby", 4);
    await card.getByText("when you open it").waitFor();
    await button("Open now…").click();
    await page.getByRole("dialog").getByText("4 people in the lobby. Their random order is drawn now.").waitFor();
    await expectAccessible(page, "the question before an opening");
    await answer("Cancel");
    assert.equal((await daegi.admin("GET", item)).openedAt, null);
    await button("Open now…").click();
    await answer("Open now");
    await toast("The line opens now, with 4 people from the lobby.");
    await becomes(page, "cohort", 4);
    await button("Open now…").waitFor({ state: "detached" });
    await card.getByText("The draw is done.").waitFor();
    await page.getByRole("row").filter({ hasText: "opened" }).first().waitFor();
    await eventually("all are admitted", async () => (await daegi.line(item)).enteredCount === 4);
    await session.end();
  });

  test("a draw with a public random number begins, and waits for a number that is late", async () => {
    const item = await line();
    const { session, page, card, toast, state, button, answer } = await lineInConsole(item);
    await button("Plan an opening…").click();
    await card.getByRole("radio", { name: "By draw" }).check();
    await card.getByText("Advanced", { exact: true }).click();
    await card.getByRole("checkbox", { name: "Mix in a public random number" }).check();
    await card.getByText("The round is chosen when you open the line.").waitFor();
    await card.getByLabel("Line opens").fill(typed(HOUR));
    await card.getByText(/Round \d+, published .*\d\d:\d\d(:\d\d)?\./).waitFor();
    await card.getByLabel("drand round").fill("7");
    await button("Plan opening").click();
    await card.getByText(/must be published within 10 minutes after the opening\. The first one that fits is \d+/).waitFor();
    await card.getByLabel("drand round").fill("");
    await expectAccessible(page, "the form of a draw with a random number");
    await button("Plan opening").click();
    await state("Lobby");
    const { round } = (await daegi.admin("GET", item)).policy.opening.beacon;
    await page.locator("#beacon").filter({ hasText: `Round ${round}, published` }).waitFor();

    const visitor = await BrowserSession.open(browser, [daegi.origin]);
    const waiting = await visitor.open(daegi.page(item));
    await waiting.locator("#text").filter({ hasText: "a public random number that does not exist yet" }).waitFor();
    await button("Open now…").click();
    await page.getByRole("dialog").getByText("It opens about 10 seconds later").waitFor();
    await answer("Open now");
    await card.getByText(/^The draw has begun, and its participants are fixed\./).waitFor();
    await button("Open now…").waitFor({ state: "detached" });
    await becomes(page, "cohort", 1);
    await waiting.getByRole("heading", { level: 1, name: "The draw is taking place" }).waitFor();
    await expectAccessible(waiting, "the page of a draw that takes place");

    // This daegi calls no relay, so that the number stays out until an operator hands it in.
    const form = card.getByLabel("Signature of the round");
    await card.getByRole("alert").filter({ hasText: /has not arrived for 00:\d\d\. The line waits for it/ }).waitFor({ timeout: 40_000 });
    await expectAccessible(page, "a late random number");
    await form.fill("b7");
    await button("Hand in").click();
    await card.getByText("Paste the response of a relay, or a signature of 96 hexadecimal digits.").waitFor();
    await form.fill(`{"signature":"${"b7".repeat(48)}"}`);
    await button("Hand in").click();
    await card.getByText(/drand's quicknet did not sign round \d+ with this signature/).waitFor();
    assert.equal((await daegi.admin("GET", item)).openedAt, null);
    assert.equal((await daegi.line(item)).lineState, "LOBBY");
    await visitor.end();
    await session.end();
  });

  test("errors stand at the field, and nothing changes", async () => {
    const item = await line();
    const { session, page, card, toast, button } = await lineInConsole(item);
    await button("Plan an opening…").click();
    const [lobby, opens, closes] = ["Lobby opens", "Line opens", "Line closes"].map((label) => card.getByLabel(label));
    await opens.fill(typed(2 * HOUR));
    await lobby.fill(typed(3 * HOUR));
    await closes.fill(typed(HOUR));
    await button("Plan opening").click();
    await card.getByRole("alert").filter({ hasText: "The lobby must open before the line." }).waitFor();
    await card.getByRole("alert").filter({ hasText: "The line must close after it opens." }).waitFor();
    assert.equal(await lobby.evaluate((field) => document.activeElement === field), true, "the first error has the focus");
    await expectAccessible(page, "errors at the field");
    await opens.fill(typed(-HOUR));
    await card.getByRole("alert").filter({ hasText: "This time is past." }).waitFor();
    assert.equal((await daegi.admin("GET", item)).policy.opening, null);
    // The server has the last word: 500 days are too far ahead.
    await lobby.fill("");
    await closes.fill("");
    await opens.fill(typed(500 * 24 * HOUR));
    await button("Plan opening").click();
    await card.getByRole("alert").filter({ hasText: "opensAt" }).waitFor();
    assert.equal(await opens.getAttribute("aria-invalid"), "true");
    assert.equal((await daegi.admin("GET", item)).policy.opening, null);
    await opens.fill(typed(HOUR));
    await button("Plan opening").click();
    await toast("0 people in the lobby.");
    await session.end();
  });

  test("an opening is planned while the line is empty only", async () => {
    const item = await line({ tokensPerTick: 0 });
    await daegi.joinOthers(item, 2);
    const { session, card, button } = await lineInConsole(item);
    await card.getByText("2 people in the line: an opening can be planned once it is empty.").waitFor();
    await button("Plan an opening…").click();
    await button("Plan opening").click();
    await card.getByRole("alert").waitFor();
    assert.equal((await daegi.admin("GET", item)).policy.opening, null);
    await session.end();
  });

  test("input that is not saved survives updates, and cancel discards it", async () => {
    const item = await line({ opening: { opensAt: inMs(2 * HOUR) } });
    const { session, page, card, button, toast } = await lineInConsole(item);
    await button("Change…").click();
    const closes = card.getByLabel("Line closes");
    const [earlier, later] = [typed(4 * HOUR), typed(5 * HOUR)];
    await closes.fill(earlier);
    await daegi.joinOthers(item, 2);
    await becomes(page, "lobby", 2);
    assert.equal(await closes.inputValue(), earlier);
    await button("Cancel").click();
    await closes.waitFor({ state: "detached" });
    await button("Change…").click();
    assert.equal(await closes.inputValue(), "");
    assert.equal(await card.getByRole("radio", { name: "By draw" }).isDisabled(), true, "people are in the lobby");
    let go;
    const held = new Promise((free) => (go = free));
    await page.route("**/policy", (route) => held.then(() => route.continue()));
    await closes.fill(earlier);
    const sent = page.waitForRequest("**/policy");
    await button("Save").click();
    await sent;
    await closes.fill(later);
    go();
    await toast(/Opening planned for .*\d\d:\d\d\. 2 people in the lobby\./);
    assert.equal(await closes.inputValue(), later, "what was typed meanwhile is kept");
    assert.equal((await daegi.admin("GET", item)).policy.opening.closesAt.slice(0, 16), earlier);
    await session.end();
  });

  test("an opening is removed while the line is empty, and the question says so otherwise", async () => {
    const item = await line({ opening: { opensAt: inMs(2 * HOUR), lobbyAt: inMs(HOUR) } });
    const { session, page, card, state, toast, button, answer } = await lineInConsole(item);
    await state("Scheduled");
    await card.getByText(/^Lobby opens .*\d\d:\d\d, opens .*\d\d:\d\d in order of arrival, does not close by itself\.$/).waitFor();
    assert.equal(await card.getByRole("timer").count(), 2);
    await daegi.policy(item, { opening: { lobbyAt: null } });
    await state("Lobby");
    await daegi.joinOthers(item, 1);
    await becomes(page, "lobby", 1);
    await button("Remove…").click();
    await page.getByRole("dialog").getByText("1 person in the line: the opening can be removed once it is empty.").waitFor();
    await answer("Cancel");
    await daegi.admin("POST", `${item}/reset`);
    await becomes(page, "lobby", 0);
    await button("Remove…").click();
    await answer("Remove the opening");
    await toast("Opening removed. The line is now: Open.");
    await card.getByText("No opening is planned.").waitFor();
    assert.equal((await daegi.admin("GET", item)).policy.opening, null);
    await session.end();
  });

  test("a line closes at its time, is found by its state and opens again with a later one", async () => {
    const item = await line({ opening: { closesAt: inMs(6_000) } });
    await daegi.admin("POST", `${item}/open`);
    const { session, page, card, state, toast, button } = await lineInConsole(item);
    await card.getByText("Closes in").waitFor();
    await state("Ended");
    await card.getByText("The closing time is over").waitFor();
    await page.getByRole("link", { name: "Lines", exact: true }).click();
    await page.getByLabel("State").selectOption("Ended");
    await page.getByRole("row").filter({ hasText: item }).getByText("Ended").waitFor();
    await page.goBack();
    await button("Change…").click();
    await card.getByLabel("Line closes").fill(typed(3 * HOUR));
    await button("Save").click();
    await toast(`Saved. The line closes`);
    await state("Open");
    await session.end();
  });

  test("the lobby works in Korean, on a phone and in dark mode", async () => {
    const item = await line({ opening: { opensAt: inMs(30 * HOUR), order: "arrival" } });
    await daegi.joinOthers(item, 2);
    for (const options of [{ locale: "ko-KR" }, { viewport: { width: 390, height: 844 } }, { colorScheme: "dark" }]) {
      const { session, page, card } = await lineInConsole(item, options);
      await becomes(page, "lobby", 2);
      await card.locator("button[aria-expanded]").click();
      await card.locator("form").waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!wide, `the page does not scroll sideways: ${JSON.stringify(options)}`);
      await expectAccessible(page, `an opening ${JSON.stringify(options)}`);
      await session.end();
    }
  });
});
