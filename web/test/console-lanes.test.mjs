// Lanes and invitation codes in the operator's console, in a real browser, against the real binary.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, eventually, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("lanes in the console");
const HOUR = 3_600_000;
const MEMBERS = { name: "members", weight: 20, first: false };
let [browser, daegi] = [];
let items = 0;

/** Creates an item whose line stands still. */
async function line(policy = {}) {
  const item = `lanes-${++items}`;
  await daegi.stock(item, 1000);
  await daegi.policy(item, { graceSeconds: 0, ...policy });
  return item;
}

async function lineInConsole(item, options = {}) {
  const session = await BrowserSession.open(browser, [daegi.internal], { timezoneId: "UTC", permissions: ["clipboard-read", "clipboard-write"], ...options });
  const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
  await page.locator("header.top").waitFor();
  await page.goto(`${daegi.internal}/admin/#/line/${item}`);
  const card = page.getByRole("region", { name: /^(Lanes|레인)$/ }).first();
  await card.waitFor();
  const dialog = page.getByRole("dialog");
  const toast = (text) => page.getByRole("status").filter({ hasText: text }).waitFor();
  const button = (name) => dialog.getByRole("button", { name, exact: true });
  const error = (text) => dialog.getByRole("alert").filter({ hasText: text }).waitFor();
  return { session, page, card, dialog, toast, button, error };
}

const open = (card, name) => card.getByRole("button", { name, exact: true }).click();
const lanesOf = async (item) => (await daegi.admin("GET", item)).policy.lanes;
const group = (dialog, name) => dialog.getByRole("group", { name, exact: true });
const row = (card, name) => card.getByRole("row").filter({ has: card.page().getByRole("rowheader", { name }) });

/** Joins users of a lane with codes. */
async function joinLane(item, lane, count) {
  const { codes } = await daegi.admin("POST", `${item}/invitations`, { lane, count, usesEach: 1, expiresAt: new Date(Date.now() + HOUR).toISOString() });
  for (const [n, code] of codes.entries()) {
    const headers = { "user-id": `${lane}-${n}-${Math.random().toString(36).slice(2)}`, "content-type": "application/json" };
    const response = await fetch(`${daegi.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers, body: JSON.stringify({ code }) });
    assert.equal(response.status, 201);
  }
}

describe("lanes in the console", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("lanes are added, renamed and removed, and the rest of the rate is shown while typing", async () => {
    const item = await line();
    const { session, page, card, dialog, toast, button } = await lineInConsole(item);
    await card.getByText("No lanes. All people wait in one line.").waitFor();
    await open(card, "Add lanes…");
    const rest = (text) => dialog.getByRole("status").filter({ hasText: text }).waitFor();
    await rest("100%");
    await dialog.getByLabel("Name").fill("members");
    await dialog.getByLabel("Share, %").fill("20");
    await rest("80%");
    await button("Add a lane").click();
    const added = group(dialog, "New lane");
    await added.getByLabel("Name").fill("vip");
    await group(dialog, "vip").getByLabel("Served first").check();
    assert.equal(await group(dialog, "vip").getByLabel("Share, %").isDisabled(), true);
    await rest("80%");
    await expectAccessible(page, "the dialog of the lanes");
    await button("Save").click();
    await toast("Lanes saved.");
    assert.deepEqual(await lanesOf(item), [MEMBERS, { name: "vip", weight: 0, first: true }]);
    await row(card, "Standard lane").getByText("80%").waitFor();
    await row(card, "vip").getByText("Served first").waitFor();
    await expectAccessible(page, "a line with lanes");

    await open(card, "Change…");
    await group(dialog, "members").getByLabel("Name").fill("press");
    await group(dialog, "press").getByLabel("Share, %").fill("35");
    await dialog.getByRole("button", { name: "Remove the lane vip" }).click();
    await rest("65%");
    await button("Save").click();
    await row(card, "press").getByText("35%").waitFor();
    assert.deepEqual(await lanesOf(item), [{ name: "press", weight: 35, first: false }]);
    await session.end();
  });

  test("errors stand at the field, and nothing changes", async () => {
    const item = await line({ lanes: [MEMBERS] });
    const { session, page, card, dialog, button, error } = await lineInConsole(item);
    await open(card, "Change…");
    const name = () => dialog.getByLabel("Name").last();
    const share = () => dialog.getByLabel("Share, %").last();
    await button("Add a lane").click();
    await name().fill("a b");
    await share().fill("0");
    await button("Save").click();
    await error("1 to 32 letters, digits or . _ ~ -");
    await error("A whole number from 1 to 99.");
    assert.equal(await name().evaluate((field) => document.activeElement === field), true, "the first error has the focus");
    await expectAccessible(page, "errors at the lanes");
    await name().fill("members");
    await error("Another lane has this name.");
    await name().fill("standard");
    await error("This is the name of the standard lane.");
    await name().fill("press");
    await share().fill("80");
    await error("The sum is 100%. At most 99%.");
    assert.deepEqual(await lanesOf(item), [MEMBERS]);
    await share().fill("79");
    await button("Save").click();
    await row(card, "press").getByText("79%").waitFor();
    await row(card, "Standard lane").getByText("1%").waitFor();
    await session.end();
  });

  test("the name of a lane with people is fixed, and the server's refusal stands at the lane", async () => {
    const item = await line({ lanes: [MEMBERS] });
    const { session, card, dialog, button, error } = await lineInConsole(item);
    await open(card, "Change…");
    // People join the lane while the dialog is open, so that the name is typed already.
    const name = group(dialog, "members").getByLabel("Name");
    await name.fill("renamed");
    await joinLane(item, "members", 2);
    await row(card, "members").getByText("2").waitFor();
    await button("Save").click();
    await error("members");
    assert.deepEqual(await lanesOf(item), [MEMBERS]);
    await button("Cancel").click();
    await open(card, "Change…");
    await dialog.getByText("2 people in this lane: its name is fixed, and it cannot be removed.").waitFor();
    assert.equal(await name.getAttribute("readonly"), "");
    assert.equal(await dialog.getByRole("button", { name: "Remove the lane members" }).isDisabled(), true);
    await group(dialog, "members").getByLabel("Share, %").fill("25");
    await button("Save").click();
    await row(card, "members").getByText("25%").waitFor();
    await session.end();
  });

  test("the figures of each lane follow the line", async () => {
    const item = await line({ lanes: [MEMBERS, { name: "vip", weight: 0, first: true }] });
    const { session, card } = await lineInConsole(item);
    await daegi.joinOthers(item, 5);
    await joinLane(item, "members", 3);
    await joinLane(item, "vip", 1);
    const cells = async (name) => (await row(card, name).getByRole("cell").allTextContents()).join(" ");
    await eventually("the lanes have their people", async () => (await cells("Standard lane")) === "80% 5 0 0" && (await cells("members")) === "20% 3 0 0");
    await daegi.policy(item, { tokensPerTick: 1, maxActive: 1 });
    await eventually("the lane that is served first is admitted first", async () => (await cells("vip")) === "Served first 0 1 1");
    assert.equal(await cells("members"), "20% 3 0 0");
    await session.end();
  });

  test("codes are made, copied and downloaded, and shown once", async () => {
    const item = await line({ lanes: [MEMBERS, { name: "vip", weight: 0, first: true }] });
    const { session, page, card, dialog, button, error } = await lineInConsole(item);
    await open(card, "Invitation codes…");
    await dialog.getByLabel("Lane").selectOption("vip");
    await dialog.getByLabel("Number of codes").fill("0");
    await dialog.getByLabel("Codes expire").fill("2020-01-01T00:00");
    await button("Make codes").click();
    await error("A whole number above 0.");
    await error("This time is past.");
    await expectAccessible(page, "errors at the codes");
    const expiry = new Date(Date.now() + 48 * HOUR).toISOString().slice(0, 16);
    await dialog.getByLabel("Number of codes").fill("3");
    await dialog.getByLabel("Uses of each code").fill("2");
    await dialog.getByLabel("Codes expire").fill(expiry);
    await button("Make codes").click();
    await dialog.getByRole("heading", { name: "3 codes for vip" }).waitFor();
    const codes = (await dialog.getByLabel("Invitation codes").inputValue()).split("\n");
    assert.equal(new Set(codes).size, 3);
    await expectAccessible(page, "the codes");

    // Codes that were not saved are not closed by accident.
    await page.keyboard.press("Escape");
    await error("Once closed, they cannot be shown again.");
    await button("Copy").click();
    await dialog.getByRole("status").filter({ hasText: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), codes.join("\n"));
    const [download] = await Promise.all([page.waitForEvent("download"), button("Download CSV").click()]);
    assert.equal(download.suggestedFilename(), `${item}-vip-codes.csv`);
    const rows = (await readFile(await download.path(), "utf8")).split("\r\n");
    const made = `vip,2,${new Date(`${expiry}Z`).toISOString().slice(0, 16)}`;
    assert.equal(rows[0], "code,lane,usesEach,expiresAt,link");
    assert.deepEqual(rows.slice(1, 4).map((text) => text.slice(0, codes[0].length + 1 + made.length)), codes.map((code) => `${code},${made}`));
    assert.ok(rows.slice(1, 4).every((text) => text.endsWith(",")), "the port tells no public address, so that there are no links");
    await dialog.getByText("the console does not know the public address").waitFor();
    await button("Close").click();
    await dialog.waitFor({ state: "detached" });
    assert.equal(await page.getByText(codes[0]).count(), 0);

    const headers = { "user-id": "kim", "content-type": "application/json" };
    const joined = await fetch(`${daegi.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers, body: JSON.stringify({ code: codes[0] }) });
    assert.equal((await joined.json()).lane, "vip");
    await session.end();
  });

  test("lanes work in Korean, on a phone and in dark mode", async () => {
    const item = await line({ lanes: [MEMBERS, { name: "vip", weight: 0, first: true }] });
    await joinLane(item, "members", 1);
    for (const options of [{ locale: "ko-KR" }, { viewport: { width: 390, height: 844 } }, { colorScheme: "dark" }]) {
      const { session, page, card, dialog } = await lineInConsole(item, options);
      const fits = async (what) => {
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll("dialog")].some((one) => one.scrollWidth > one.clientWidth));
        assert.ok(!wide, `${what} does not scroll sideways: ${JSON.stringify(options)}`);
        await expectAccessible(page, `${what} ${JSON.stringify(options)}`);
      };
      await fits("the card of the lanes");
      await card.getByRole("button").last().click();
      await dialog.waitFor();
      await fits("the dialog of the lanes");
      await page.keyboard.press("Escape");
      await card.getByRole("button").first().click();
      await dialog.waitFor();
      await fits("the dialog of the codes");
      await session.end();
    }
  });
});
