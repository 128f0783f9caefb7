// Challenges at the join, in a real browser against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BrowserSession, chromiumPath, expectAccessible, expectPosition, launch } from "./browser.mjs";
import { DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("challenges at the join");
let [browser, daegi] = [];
let items = 0;

/** Creates an item whose line admits no ticket and challenges new users. */
async function line() {
  const item = `challenge-${++items}`;
  await daegi.stock(item, 1000);
  await daegi.policy(item, { challenge: "pow", graceSeconds: 0 });
  return item;
}

/** Opens a session that records the responses to its joins. */
async function open(options) {
  const session = await BrowserSession.open(browser, [daegi.origin], options);
  session.joins = [];
  session.workers = [];
  session.context.on("response", (response) => {
    if (response.request().method() === "POST") session.joins.push(response.status());
  });
  session.context.on("page", (page) => page.on("worker", (worker) => session.workers.push(worker.url())));
  return session;
}

describe("challenges", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("the page solves the challenge in a worker, says so, and joins; a reload solves nothing again", async () => {
    const item = await line();
    const session = await open();
    // The second join waits until the test has seen the screen.
    let seen = () => {};
    const isSeen = new Promise((resolve) => (seen = resolve));
    await session.context.route("**/waiting-queue", async (route) => {
      if (route.request().postData()?.includes('"challenge"')) await isSeen;
      await route.continue();
    });
    const page = await session.open(daegi.page(item));
    await page.locator("#headline").filter({ hasText: "Checking your browser…" }).waitFor();
    await page.locator("#said").filter({ hasText: "Checking your browser" }).waitFor({ state: "attached" });
    await expectAccessible(page, "a page that solves a challenge");
    seen();
    await expectPosition(page, 1);
    assert.deepEqual(session.joins, [403, 201]);
    assert.equal(session.workers.length, 1);
    assert.match(session.workers[0], /\/wait\.js\?v=/);
    await page.reload();
    await expectPosition(page, 1);
    assert.deepEqual(session.joins, [403, 201], "the stored token is enough");
    await session.end();
  });

  test("a page without workers solves the challenge itself", async () => {
    const item = await line();
    const session = await open();
    await session.context.addInitScript(() => delete globalThis.Worker);
    await expectPosition(await session.open(daegi.page(item)), 1);
    assert.deepEqual([session.joins, session.workers], [[403, 201], []]);
    await session.end();
  });

  test("a browser without scripts shows that the line needs them", async () => {
    const item = await line();
    const session = await open({ javaScriptEnabled: false });
    const page = await session.open(daegi.page(item));
    await page.getByRole("button", { name: "Join" }).click();
    await page.getByRole("heading", { name: "This line needs JavaScript" }).waitFor();
    assert.equal((await daegi.line(item)).waitingCount, 0);
    await session.end();
  });
});
