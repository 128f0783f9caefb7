// Lanes and invitation codes on the waiting page, in a real browser against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BrowserSession, chromiumPath, expectAccessible, expectPosition, expectScreen, launch } from "./browser.mjs";
import { DaegiProcess, eventually } from "./daegi.mjs";

const path = chromiumPath("the lanes of a line");
const HOUR = 3_600_000;
const MEMBERS = { name: "members", weight: 30, first: false };
let [browser, daegi] = [];
let items = 0;

const inMs = (ms) => new Date(Date.now() + ms).toISOString();

/** Creates an item whose line admits one ticket, which is taken, so that the others keep their positions. */
async function line(policy = { lanes: [MEMBERS] }) {
  const item = `lanes-${++items}`;
  await daegi.stock(item, 1000);
  await daegi.policy(item, { tokensPerTick: 1, maxActive: 1, graceSeconds: 0, ...policy });
  if (policy.opening) return item;
  await daegi.joinOthers(item, 1);
  await eventually("the line is full", async () => (await daegi.line(item)).enteredCount === 1);
  return item;
}

async function codes(item, { lane = "members", count = 1, usesEach = 1 } = {}) {
  return (await daegi.admin("POST", `${item}/invitations`, { lane, count, usesEach, expiresAt: inMs(HOUR) })).codes;
}

/** Joins other users of a lane. */
async function joinLane(item, count) {
  for (const code of await codes(item, { count })) {
    const headers = { "user-id": `member-${Math.random().toString(36).slice(2)}`, "content-type": "application/json" };
    const response = await fetch(`${daegi.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers, body: JSON.stringify({ code }) });
    assert.equal(response.status, 201);
  }
}

/** A user with a browser. `fragment` is that of the address. */
async function visit(item, options = {}, fragment = "") {
  const session = await BrowserSession.open(browser, [daegi.origin], options);
  session.joins = [];
  session.looks = [];
  session.context.on("request", (request) => {
    if (request.method() === "POST") session.joins.push(request.postData() ?? "");
    else if (request.url().endsWith("/waiting-queue")) session.looks.push(request.url());
  });
  session.page = await session.open(daegi.page(item) + fragment);
  return session;
}

const laneOf = (page, text) => page.locator("#lane").filter({ hasText: text }).waitFor();
const message = (page, text) => page.locator("#code-text").filter({ hasText: text }).waitFor();
const announced = (page, text) => page.locator("#said").filter({ hasText: text }).waitFor({ state: "attached" });

/** Types a code into the form. */
async function type(page, code) {
  await page.getByText("I have an invitation code").click();
  await page.getByLabel("Invitation code").fill(code);
  await page.getByRole("button", { name: "Use code" }).click();
}

const answer = (page, name) => page.getByRole("dialog").getByRole("button", { name }).click();

describe("lanes", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("an invitation link joins the lane, and the code leaves the address and no request line has it", async () => {
    const item = await line();
    await daegi.joinOthers(item, 5);
    await joinLane(item, 2);
    const [code] = await codes(item);
    const session = await visit(item, {}, `#code=${code}`);
    const { page } = session;
    await expectPosition(page, 3);
    await laneOf(page, "You are in the line “members”");
    await laneOf(page, "About 30% of entries go to this line.");
    assert.equal(new URL(page.url()).hash, "");
    assert.ok(session.requests.every((url) => !url.includes(code)), "the code is in no address");
    assert.deepEqual(session.joins, [JSON.stringify({ code })]);
    await expectAccessible(page, "a user in a lane");
    await page.reload();
    await expectPosition(page, 3);
    assert.equal(session.joins.length, 1, "a reload does not use the code again");
    await session.end();
  });

  test("a page that is opened with a used code joins without it and says why", async () => {
    const item = await line();
    const [code] = await codes(item);
    const first = await visit(item, {}, `#code=${code}`);
    await laneOf(first.page, "You are in the line “members”");
    const session = await visit(item, {}, `#code=${code}`);
    const { page } = session;
    await message(page, "was already used, or has expired. You joined the line without it.");
    await expectPosition(page, 1);
    assert.equal(await page.getByLabel("Invitation code").inputValue(), code);
    await expectAccessible(page, "a code that was refused");
    await laneOf(page, "About 30% of entries go to invited visitors");
    await Promise.all([first.end(), session.end()]);
  });

  test("a waiting user changes lines after a confirmation, in all tabs", async () => {
    const item = await line();
    await daegi.joinOthers(item, 4);
    await joinLane(item, 1);
    const [code] = await codes(item);
    const session = await visit(item);
    const { page } = session;
    await expectPosition(page, 5);
    const tab = await session.open(daegi.page(item));
    await expectPosition(tab, 5);
    await type(page, ` ${code} `);
    await page.getByRole("dialog").getByText("You give up your present place").waitFor();
    await expectAccessible(page, "the question before a user changes lines");
    await answer(page, "Stay");
    assert.equal(session.joins.length, 1, "nothing is sent without the confirmation");
    await page.getByRole("button", { name: "Use code" }).click();
    await answer(page, "Change lines");
    await expectPosition(page, 2);
    await laneOf(page, "You are in the line “members”");
    await announced(page, "You are now in the line “members”.");
    assert.equal(await page.getByLabel("Invitation code").isVisible(), false, "the form is folded");
    await expectPosition(tab, 2);
    await expectScreen(tab, "waiting");
    await session.end();
  });

  test("the form works by keyboard, and a wrong code keeps the place and says so at the field", async () => {
    const item = await line();
    await daegi.joinOthers(item, 2);
    const session = await visit(item);
    const { page } = session;
    await expectPosition(page, 3);
    await page.getByText("I have an invitation code").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await message(page, "Please type the code first.");
    await page.keyboard.type("초대-WRONG");
    await page.keyboard.press("Enter");
    await answer(page, "Change lines");
    await message(page, "This code is not valid for this line, was already used, or has expired. You keep your place.");
    assert.equal(await page.getByLabel("Invitation code").getAttribute("aria-invalid"), "true");
    await expectPosition(page, 3);
    await expectScreen(page, "waiting");
    await expectAccessible(page, "a wrong code");
    await session.end();
  });

  test("a link that is opened while the user waits asks first", async () => {
    const item = await line();
    const [code] = await codes(item);
    const session = await visit(item);
    const { page } = session;
    await expectPosition(page, 1);
    // Only the fragment differs, so that the browser does not load the page again.
    await page.goto(`${daegi.page(item)}#code=${code}`);
    await answer(page, "Change lines");
    await laneOf(page, "You are in the line “members”");
    assert.equal(new URL(page.url()).hash, "");
    await session.end();
  });

  test("a code is used in the lobby, and one that is typed before the lobby is used when it opens", async () => {
    const item = await line({ lanes: [MEMBERS], opening: { opensAt: inMs(HOUR), lobbyAt: null } });
    const [code, other] = await codes(item, { count: 2 });
    const session = await visit(item);
    await expectScreen(session.page, "lobby");
    await type(session.page, code);
    await answer(session.page, "Change lines");
    await laneOf(session.page, "You are in the line “members”");
    await expectScreen(session.page, "lobby");
    await expectAccessible(session.page, "the lobby of a lane");
    await session.end();

    const later = await line({ lanes: [MEMBERS], opening: { opensAt: inMs(HOUR), lobbyAt: inMs(6_000) } });
    const early = await visit(later);
    await expectScreen(early.page, "scheduled");
    const [mine] = await codes(later);
    await type(early.page, mine);
    await laneOf(early.page, "Your invitation code is saved");
    assert.equal(early.joins.length, 0);
    await early.page.reload();
    await laneOf(early.page, "Your invitation code is saved");
    await expectScreen(early.page, "lobby");
    await laneOf(early.page, "You are in the line “members”");
    assert.deepEqual(early.joins, [JSON.stringify({ code: mine })]);
    assert.notEqual(other, mine);
    await early.end();
  });

  test("a line without lanes has no form and requests no lanes", async () => {
    const item = await line({ lanes: [] });
    const session = await visit(item);
    await session.page.clock.install();
    await session.page.reload();
    await expectPosition(session.page, 1);
    await session.page.clock.runFor(120_000);
    assert.equal(await session.page.getByText("I have an invitation code").isVisible(), false);
    assert.deepEqual(session.looks, []);
    await session.end();
  });

  test("users behind a lane that is served first see so", async () => {
    const item = await line({ lanes: [{ name: "members", weight: 0, first: true }] });
    await joinLane(item, 1);
    const [code] = await codes(item);
    const session = await visit(item);
    await laneOf(session.page, "Some invited visitors go before you");
    await session.end();
    const member = await visit(item, {}, `#code=${code}`);
    await laneOf(member.page, "This line goes first.");
    await member.end();
  });

  test("lanes work in Korean, on a phone and in dark mode", async () => {
    const item = await line();
    const [code] = await codes(item, { usesEach: 10 });
    await joinLane(item, 1);
    for (const options of [{ locale: "ko-KR" }, { viewport: { width: 360, height: 640 } }, { colorScheme: "dark" }]) {
      for (const fragment of ["", `#code=${code}`, "#code=WRONG"]) {
        const session = await visit(item, options, fragment);
        await expectScreen(session.page, "waiting");
        await laneOf(session.page, "%");
        if (fragment === "") await session.page.locator("#invitation summary").click();
        const wide = await session.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.ok(!wide, `the page does not scroll sideways: ${JSON.stringify(options)} ${fragment}`);
        await expectAccessible(session.page, `a lane ${JSON.stringify(options)} ${fragment}`);
        await session.end();
      }
    }
  });

  test("without scripts a code is typed before joining or while waiting", async () => {
    const item = await line();
    await daegi.joinOthers(item, 2);
    const [code, other] = await codes(item, { count: 2 });
    const session = await visit(item, { javaScriptEnabled: false });
    const { page } = session;
    await page.getByRole("textbox", { name: "Invitation code" }).fill("WRONG");
    await page.getByRole("button", { name: "Join the line" }).click();
    await page.locator("#still-refused").waitFor();
    await page.getByRole("textbox", { name: "Invitation code" }).fill(code);
    await page.getByRole("button", { name: "Join the line" }).click();
    await page.locator(".still strong").filter({ hasText: /^1$/ }).waitFor();
    await session.end();

    const standard = await visit(item, { javaScriptEnabled: false });
    await standard.page.getByRole("button", { name: "Join the line" }).click();
    await standard.page.locator(".still strong").filter({ hasText: /^3$/ }).waitFor();
    await standard.page.getByRole("link", { name: "I have an invitation code" }).click();
    assert.equal(await standard.page.locator("meta[http-equiv=refresh]").count(), 0, "a reload would clear the field");
    await standard.page.getByRole("textbox", { name: "Invitation code" }).fill("WRONG");
    await standard.page.getByRole("button", { name: "Change lines" }).click();
    await standard.page.locator("#still-refused").waitFor();
    await standard.page.locator(".still strong").filter({ hasText: /^3$/ }).waitFor();
    await standard.page.getByRole("textbox", { name: "Invitation code" }).fill(other);
    await standard.page.getByRole("button", { name: "Change lines" }).click();
    await standard.page.locator(".still strong").filter({ hasText: /^2$/ }).waitFor();
    await standard.end();
  });
});
