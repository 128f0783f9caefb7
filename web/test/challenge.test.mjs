// Challenges at the join, in a real browser against the real binary.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { BrowserSession, chromiumPath, expectAccessible, expectPosition, launch } from "./browser.mjs";
import { DaegiProcess, eventually } from "./daegi.mjs";

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

  test("a browser without scripts joins with an invitation code, and the page says so", async () => {
    const item = await line();
    const session = await open({ javaScriptEnabled: false });
    const page = await session.open(daegi.page(item));
    await page.getByRole("heading", { name: "This line needs JavaScript" }).waitFor();
    assert.match(await page.locator(".still").textContent(), /ask the organiser for an invitation code/);
    assert.equal(await page.getByRole("button").count(), 0, "a form could not join");
    await daegi.policy(item, { lanes: [{ name: "helped", weight: 50, first: false }] });
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { codes } = await daegi.admin("POST", `${item}/invitations`, { lane: "helped", count: 1, usesEach: 1, expiresAt });
    await eventually("the page has the form", async () => {
      await page.reload();
      return (await page.getByRole("button", { name: "Join" }).count()) === 1;
    });
    await page.getByRole("button", { name: "Join" }).click();
    await page.getByRole("heading", { name: "This line needs JavaScript" }).waitFor();
    assert.equal((await daegi.line(item)).waitingCount, 0);
    await page.locator("#still-code").fill(codes[0]);
    await page.getByRole("button", { name: "Join" }).click();
    await page.locator(".still .number").waitFor();
    await session.end();
  });
});

/** The script of a provider: a button in a frame's place, whose click makes a response. */
const SCRIPT = `
const origin = new URL(document.currentScript.src).origin;
globalThis.turnstile = {
  render(place, { sitekey, cData, callback }) {
    const [frame, button] = [document.createElement("iframe"), document.createElement("button")];
    frame.src = origin + "/frame";
    frame.title = "widget";
    button.textContent = "I am a person";
    button.onclick = async () => callback(await (await fetch(origin + "/solve?" + new URLSearchParams({ sitekey, cData }))).text());
    place.append(frame, button);
    return "shown";
  },
  remove: () => document.getElementById("widget").replaceChildren(),
};`;

/** A provider on an origin of its own. Its responses are confirmed once. */
async function provider() {
  const solved = new Map();
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    response.setHeader("access-control-allow-origin", "*");
    if (pathname === "/api.js") return response.setHeader("content-type", "text/javascript").end(SCRIPT);
    if (pathname === "/frame") return response.setHeader("content-type", "text/html").end("<!doctype html><title>widget</title>");
    if (pathname === "/solve") {
      const answer = `response-${solved.size}`;
      solved.set(answer, searchParams.get("cData"));
      return response.end(answer);
    }
    const form = new URLSearchParams(await text(request));
    const cdata = solved.get(form.get("response"));
    solved.set(form.get("response"), undefined);
    response.end(JSON.stringify({ success: form.get("secret") === "secret" && cdata !== undefined, hostname: "127.0.0.1", cdata }));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { origin: `http://127.0.0.1:${server.address().port}`, end: () => (server.closeAllConnections(), server.close()) };
}

describe("widgets of third parties", { skip: !path }, () => {
  let [browser, daegi, widget] = [];
  before(async () => {
    widget = await provider();
    const options = ["site-key=site", "secret=secret", `verify-url=${widget.origin}/verify`, `script-url=${widget.origin}/api.js`, "hostnames=127.0.0.1"];
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open("memory", options.map((option) => `--widget-${option}`))]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
    widget?.end();
  });

  test("the page shows the widget, which only its policy permits, and joins with its response", async () => {
    await daegi.stock("gala", 1000);
    await daegi.policy("gala", { challenge: "widget", graceSeconds: 0 });
    const session = await BrowserSession.open(browser, [daegi.origin, widget.origin]);
    const page = await session.open(daegi.page("gala"));
    await page.getByRole("heading", { name: "Please confirm that you are a person" }).waitFor();
    await expectAccessible(page, "a page with a widget");
    await page.getByRole("button", { name: "I am a person" }).click();
    await expectPosition(page, 1);
    assert.equal(await page.locator("#widget").isVisible(), false);
    await page.reload();
    await expectPosition(page, 1);
    await session.end();
  });

  test("a page that was loaded before the line got its widget is loaded again", async () => {
    await daegi.stock("late", 1000);
    const session = await BrowserSession.open(browser, [daegi.origin, widget.origin]);
    let isChanged = false;
    await session.context.route("**/waiting-queue", async (route) => {
      if (route.request().method() === "POST" && !isChanged) {
        isChanged = true;
        await daegi.policy("late", { challenge: "widget", graceSeconds: 0 });
        await eventually("the api has read the policy", async () => {
          const headers = { "user-id": `probe-${Math.random()}` };
          return (await fetch(`${daegi.origin}/api/v1/item/late/waiting-queue`, { method: "POST", headers })).status === 403;
        });
      }
      await route.continue();
    });
    const page = await session.open(daegi.page("late"));
    await page.getByRole("button", { name: "I am a person" }).click();
    await page.locator("#position").filter({ hasText: /\d/ }).waitFor();
    await session.end();
  });
});
