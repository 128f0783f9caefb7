// The waiting page in a real browser, against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, expectPosition, chromiumPath, launch, expectScreen, BrowserSession } from "./browser.mjs";
import { Shop } from "./shop.mjs";
import { eventually, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath();
let [browser, daegi, shop] = [];
let items = 0;

/** Creates an item for one test, with users in its line. */
async function line(users, policy = {}) {
  const item = `item-${++items}`;
  await daegi.stock(item, 1000);
  await daegi.policy(item, { entryUrl: shop.entryUrl, ...policy });
  await daegi.joinOthers(item, users);
  return item;
}

const visitor = (options) => BrowserSession.open(browser, [daegi.origin], options);
const customer = (options) => BrowserSession.open(browser, [daegi.origin, shop.origin], options);
const expectHeadline = (page, text) => page.getByRole("heading", { level: 1, name: text }).waitFor();

describe("the waiting page", { skip: !path }, () => {
  before(async () => {
    [browser, daegi, shop] = await Promise.all([launch(path), DaegiProcess.open(), Shop.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
    shop?.end();
  });

  test("the page joins, counts down and redirects to the shop with a valid pass", async () => {
    const item = await line(6, { tokensPerTick: 1, maxActive: 1 });
    const session = await customer();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 6);
    assert.match(await page.title(), /^No\. 6 · Friday 8 pm concert$/);
    assert.equal(await page.locator("#ahead").textContent(), "5");
    assert.equal(await page.locator("#behind").textContent(), "0");
    await page.evaluate(() => {
      globalThis.seen = [];
      const note = () =>
        globalThis.seen.push([
          Number(document.getElementById("position").textContent),
          Number(document.getElementById("bar").getAttribute("aria-valuenow")),
        ]);
      new MutationObserver(note).observe(document.getElementById("place"), { subtree: true, childList: true, attributes: true });
    });
    await daegi.policy(item, { maxActive: 3 });
    await expectPosition(page, 4);
    await daegi.policy(item, { maxActive: null });
    await expectScreen(page, "turn");
    const seen = await page.evaluate(() => globalThis.seen);
    for (let next = 1; next < seen.length; next++) {
      assert.ok(seen[next][0] <= seen[next - 1][0], "the position never grows");
      assert.ok(seen[next][1] >= seen[next - 1][1], "the bar never runs backwards");
    }
    assert.match(await page.title(), /Your turn/);
    // The server sends whole seconds, so the page may be one second behind.
    assert.match(await page.locator("#countdown").textContent(), /^(10:0[01]|9:\d\d)$/);
    await page.waitForURL(`${shop.origin}/enter?**`);
    const pass = shop.passes.at(-1);
    const claims = await shop.claims(pass, daegi.origin);
    assert.equal(claims.aud, item);
    assert.equal((await daegi.verify(item, pass)).valid, true);
    await session.end();
  });

  test("a reload, a reopened tab and a second tab show the same position", async () => {
    const item = await line(3);
    const session = await visitor();
    const first = await session.open(daegi.page(item));
    await expectPosition(first, 4);
    const token = () => first.evaluate((key) => JSON.parse(localStorage.getItem(key)).token, `daegi:${item}`);
    const mine = await token();
    await first.reload();
    await expectPosition(first, 4);
    const second = await session.open(daegi.page(item));
    await expectPosition(second, 4);
    await first.close();
    const third = await session.open(daegi.page(item));
    await expectPosition(third, 4);
    assert.equal(await second.evaluate((key) => JSON.parse(localStorage.getItem(key)).token, `daegi:${item}`), mine);
    assert.equal((await daegi.line(item)).waitingCount, 4, "no second ticket was issued");
    await session.end();
  });

  test("the page shows paused and sold out, and continues with the line", async () => {
    const item = await line(1, { tokensPerTick: 1, maxActive: 1 });
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectScreen(page, "waiting");
    await daegi.admin("POST", `${item}/pause`);
    await expectHeadline(page, "The line is paused");
    await expectScreen(page, "still");
    await expectAccessible(page, "a paused line");
    await daegi.stock(item, 0);
    await expectHeadline(page, "Sold out");
    assert.match(await page.locator("#text").textContent(), /You keep your place/);
    await daegi.stock(item, 1000);
    await daegi.admin("POST", `${item}/resume`);
    await expectScreen(page, "waiting");
    await session.end();
  });

  test("a page at a sold-out line joins after a restock", async () => {
    const item = await line(0);
    await daegi.stock(item, 0);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectHeadline(page, "Sold out");
    await expectAccessible(page, "sold out");
    await daegi.stock(item, 5);
    await expectPosition(page, 1);
    await session.end();
  });

  test("a page at a closed line does not join until the line opens", async () => {
    const item = await line(0);
    await daegi.admin("POST", `${item}/manually`, { itemName: "Friday 8 pm concert", remainCount: 5, waitingQueueEnabled: false });
    const session = await visitor();
    const [joins, looks] = [[], []];
    session.context.on("request", (request) => {
      if (!request.url().endsWith("/waiting-queue")) return;
      (request.method() === "POST" ? joins : looks).push(request.url());
    });
    const page = await session.open(daegi.page(item));
    await expectHeadline(page, "The line is closed");
    await expectAccessible(page, "a closed line");
    await eventually("the page looks at the line", async () => looks.length >= 2, 30_000);
    assert.equal(joins.length, 0, "the server said so with the page");
    await daegi.stock(item, 5);
    await page.locator("#position").filter({ hasText: /^1$/ }).waitFor({ timeout: 30_000 });
    assert.equal(joins.length, 1);
    await session.end();
  });

  for (const [code, status, english, korean] of [
    ["LINE_FULL", 429, "The line is full", "대기열이 가득 찼습니다"],
    ["STORE_FULL", 503, "Very busy right now", "접속이 매우 많습니다"],
    ["RATE_LIMITED", 429, "Too many requests", "요청이 너무 많습니다"],
    ["A_CODE_OF_TOMORROW", 403, "You could not join the line", "줄을 설 수 없습니다"],
  ]) {
    test(`${code} is explained in both languages`, async () => {
      const item = await line(0);
      for (const [locale, headline] of [["en-US", english], ["ko-KR", korean]]) {
        const session = await visitor({ locale });
        const body = JSON.stringify({ code, status, detail: code });
        const refuse = (route) => (route.request().method() === "POST" ? route.fulfill({ status, body, headers: { "retry-after": "5" } }) : route.continue());
        await session.context.route("**/waiting-queue", refuse);
        const page = await session.open(daegi.page(item));
        await expectHeadline(page, headline);
        assert.ok(await page.locator("#text").textContent());
        await session.end();
      }
    });
  }

  test("the operator's message is always visible, and a change appears within 2 s", async () => {
    const item = await line(1, { page: { message: "Doors open at seven." } });
    const session = await customer();
    const page = await session.open(daegi.page(item));
    const message = page.locator("#message");
    await expectPosition(page, 2);
    assert.equal(await message.textContent(), "Doors open at seven.");
    await expectAccessible(page, "a message");
    const takes = async (text) => {
      const began = Date.now();
      await daegi.policy(item, { page: { message: text } });
      await message.filter({ hasText: text }).waitFor();
      const took = Date.now() - began;
      assert.ok(took < 2_000, `${took} ms`);
    };
    await takes("Doors open at eight.");
    await daegi.admin("POST", `${item}/pause`);
    await expectHeadline(page, "The line is paused");
    await message.filter({ hasText: "Doors open at eight." }).waitFor();
    await takes("<b>Sorry</b>, a short break.");
    await daegi.policy(item, { page: { message: null } });
    await message.waitFor({ state: "hidden" });
    await takes("Almost there.");
    await daegi.policy(item, { tokensPerTick: 2 });
    await daegi.admin("POST", `${item}/resume`);
    await expectScreen(page, "turn");
    assert.ok(await message.isVisible(), "also after the admission");
    await session.end();
  });

  test("a polling page receives the operator's message", async () => {
    const item = await line(1);
    const session = await visitor();
    await session.context.route("**/events?**", (route) => route.fulfill({ status: 503, body: "" }));
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    await daegi.policy(item, { page: { message: "A short break." } });
    await page.locator("#message").filter({ hasText: "A short break." }).waitFor({ timeout: 60_000 });
    await session.end();
  });

  test("eight tabs share one stream, and another tab takes over when its tab closes", async () => {
    const item = await line(3);
    const session = await visitor();
    const streams = new Map();
    session.context.on("request", (request) => {
      if (request.url().includes("/events")) streams.set(request, request.frame().page());
    });
    for (const over of ["requestfailed", "requestfinished"]) session.context.on(over, (request) => streams.delete(request));
    const tabs = [];
    for (let n = 0; n < 8; n++) tabs.push(await session.open(daegi.page(item)));
    for (const tab of tabs) await expectPosition(tab, 4);
    assert.equal(streams.size, 1, "one stream for all of them");
    assert.equal((await daegi.line(item)).waitingCount, 4, "and one ticket");
    await daegi.admin("POST", `${item}/pause`);
    for (const tab of tabs) await expectHeadline(tab, "The line is paused");
    const [leader] = streams.values();
    assert.equal(leader, tabs[0], "the oldest tab has it");
    await leader.close();
    const others = tabs.filter((tab) => tab !== leader);
    await eventually("another tab has a stream", async () => [...streams.values()].filter((tab) => tab !== leader).length === 1);
    assert.ok([...streams.values()].includes(tabs[1]), "the next oldest one");
    await daegi.admin("POST", `${item}/resume`);
    await daegi.policy(item, { page: { message: "Here we go." }, tokensPerTick: 1, maxActive: 1 });
    for (const tab of others) {
      await expectPosition(tab, 3);
      await tab.locator("#message").filter({ hasText: "Here we go." }).waitFor();
    }
    await daegi.admin("POST", `${item}/reset`);
    for (const tab of others) await expectPosition(tab, 1);
    assert.equal((await daegi.line(item)).waitingCount, 1, "they join once after a reset");
    await session.end();
  });

  test("a visible tab replaces a suspended tab that holds the lock", async () => {
    const item = await line(1);
    const session = await visitor();
    // A tab that holds the lock, as one that a phone has suspended.
    const suspended = await session.open(daegi.page(item));
    await expectPosition(suspended, 2);
    const token = await suspended.evaluate((key) => JSON.parse(localStorage.getItem(key)).token, `daegi:${item}`);
    await suspended.goto(`${daegi.origin}/openapi.json`);
    await suspended.evaluate((name) => new Promise((held) => {
      const forEver = () => {
        held();
        return new Promise(() => {});
      };
      // The request rejects when another tab steals the lock.
      navigator.locks.request(name, { steal: true }, forEver).catch(() => {});
    }), `daegi:follow:${token}`);
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    await session.end();
  });

  test("leaving asks for confirmation, works by keyboard, and joining again starts at the end", async () => {
    const item = await line(1);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    await page.locator("#leave").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Leave the line?" }).waitFor();
    await expectAccessible(page, "the question");
    await page.keyboard.press("Escape");
    await expectPosition(page, 2);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await expectHeadline(page, "You left the line");
    await expectAccessible(page, "an end");
    await daegi.joinOthers(item, 1);
    await page.getByRole("button", { name: "Join again" }).click();
    await expectPosition(page, 3);
    await session.end();
  });

  test("after a reset the page joins again and says so", async () => {
    const item = await line(2);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 3);
    await daegi.admin("POST", `${item}/reset`);
    await expectPosition(page, 1);
    await page.getByText("The line was restarted").waitFor();
    await session.end();
  });

  test("the page polls if streams are blocked", async () => {
    const item = await line(1);
    const session = await customer();
    await session.context.route("**/events?**", (route) => route.fulfill({ status: 503, body: "" }));
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    await daegi.policy(item, { tokensPerTick: 1 });
    await page.waitForURL(`${shop.origin}/enter?**`);
    await session.end();
  });

  test("a user who returns from the shop gets a link instead of a redirect", async () => {
    const item = await line(0, { tokensPerTick: 1 });
    const session = await customer();
    const page = await session.open(daegi.page(item));
    await page.waitForURL(`${shop.origin}/enter?**`);
    await page.goto(daegi.page(item));
    await expectScreen(page, "turn");
    const enter = page.getByRole("link", { name: "Continue" });
    assert.ok((await enter.getAttribute("href")).startsWith(shop.origin));
    await expectAccessible(page, "the turn");
    await enter.click();
    await page.waitForURL(`${shop.origin}/enter?**`);
    await session.end();
  });

  test("without scripts a user joins, waits and is admitted", async () => {
    const item = await line(1);
    const session = await customer({ javaScriptEnabled: false });
    const page = await session.open(daegi.page(item));
    await expectHeadline(page, "Friday 8 pm concert");
    await page.getByRole("button", { name: "Join the line" }).click();
    await expectHeadline(page, "The line is paused");
    assert.equal(await page.locator(".still strong").textContent(), "2");
    await page.reload();
    assert.equal(await page.locator(".still strong").textContent(), "2");
    await daegi.policy(item, { tokensPerTick: 2 });
    await page.waitForURL(`${shop.origin}/enter?**`, { timeout: 30_000 });
    assert.equal((await daegi.verify(item, shop.passes.at(-1))).valid, true);
    await session.end();
  });

  for (const [locale, headline] of [
    ["ko-KR", "대기 중입니다"],
    ["en-GB", "You are in line"],
    ["fr-FR", "You are in line"],
  ]) {
    test(`a ${locale} browser shows "${headline}"`, async () => {
      const item = await line(1, { tokensPerTick: 1, maxActive: 1 });
      await daegi.joinOthers(item, 1);
      const session = await visitor({ locale });
      const page = await session.open(daegi.page(item));
      await expectHeadline(page, headline);
      assert.equal(await page.locator("html").getAttribute("lang"), locale === "ko-KR" ? "ko" : "en");
      await session.end();
    });
  }

  for (const colorScheme of ["light", "dark"]) {
    test(`the page fits a phone in ${colorScheme} mode`, async () => {
      const item = await line(2);
      const session = await visitor({ viewport: { width: 390, height: 844 }, colorScheme, isMobile: true });
      const page = await session.open(daegi.page(item));
      await expectPosition(page, 3);
      const [wide, high] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]);
      assert.ok(wide <= 390 && high <= 844, `${wide} × ${high}: the page must not scroll`);
      await expectAccessible(page, `a phone in ${colorScheme}`);
      await session.end();
    });
  }

  test("the content security policy blocks foreign and inline scripts", async () => {
    const item = await line(0);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 1);
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "globalThis.foreign = true";
      document.body.append(script);
      return globalThis.foreign === true;
    });
    assert.equal(ran, false, "inline scripts are refused");
    assert.equal(session.errors.length, 1, "only that one was blocked");
    session.errors = [];
    await session.end();
  });

  test("the page makes few announcements to screen readers", async () => {
    const item = await line(8);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 9);
    await page.evaluate(() => {
      globalThis.announcements = 0;
      new MutationObserver(() => globalThis.announcements++).observe(document.getElementById("said"), { childList: true });
    });
    await daegi.policy(item, { tokensPerTick: 1, maxActive: 6 });
    await expectPosition(page, 3);
    const announcements = await page.evaluate(() => globalThis.announcements);
    assert.ok(announcements <= 2, `${announcements} announcements for six positions`);
    await session.end();
  });

  test("an unknown item shows an explanation", async () => {
    const session = await visitor();
    const page = await session.open(daegi.page("nothing"));
    await expectHeadline(page, "We can't find this line");
    await expectAccessible(page, "an unknown item");
    await session.end();
  });
});
