// What the waiting page says and offers: states, languages, alerts, and other devices.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, expectPosition, expectScreen, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { Shop } from "./shop.mjs";
import { eventually, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath();
let [browser, daegi, shop] = [];
let items = 0;

/** Creates an item for one test, with users in its line. */
async function line(users, policy = {}) {
  const item = `page-${++items}`;
  await daegi.stock(item, 100_000);
  await daegi.policy(item, policy);
  await daegi.joinOthers(item, users);
  return item;
}

const visitor = (options) => BrowserSession.open(browser, [daegi.origin], options);
const stored = (page, item) => page.evaluate((key) => JSON.parse(localStorage.getItem(key)), `daegi:${item}`);
const way = (page) => page.locator("#way");
const said = (page, text) => page.locator("#text").filter({ hasText: text }).waitFor();

describe("what the waiting page says", { skip: !path }, () => {
  before(async () => {
    [browser, daegi, shop] = await Promise.all([launch(path), DaegiProcess.open(), Shop.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
    shop?.end();
  });

  test("every end has a text, a link of the operator and a way back into the line", async () => {
    const links = { home: { url: "/shop" }, completed: { url: "https://shop.example/orders", label: { en: "My orders", ko: "내 주문" } } };
    const item = await line(0, { tokensPerTick: 1, passTtlSeconds: 600, page: { links } });
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectScreen(page, "turn");
    const { token } = await stored(page, item);
    await fetch(`${daegi.internal}/internal/v1/item/${item}/entry/complete`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
    await page.getByRole("heading", { level: 1, name: "All done" }).waitFor();
    assert.deepEqual([await way(page).textContent(), await way(page).getAttribute("href")], ["My orders", "https://shop.example/orders"]);
    await expectAccessible(page, "after the order");
    await page.getByRole("button", { name: "Join again" }).click();
    await expectScreen(page, "turn");
    await page.locator("#leave").click();
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "You left the line" }).waitFor();
    assert.deepEqual([await way(page).textContent(), await way(page).getAttribute("href")], ["Back to the website", "/shop"]);
    await session.end();
  });

  test("a line that is sold out, closed or unknown says what to do, and changed links appear", async () => {
    const item = await line(1);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    await daegi.stock(item, 0);
    await said(page, "You keep your place while this page is open");
    assert.ok(await way(page).isHidden(), "without a link of the operator there is none");
    await daegi.policy(item, { page: { links: { soldOut: { url: "/more", label: "Other dates" } } } });
    await way(page).filter({ hasText: "Other dates" }).waitFor();
    const outside = await (await visitor()).open(daegi.page(item));
    await way(outside).filter({ hasText: "Other dates" }).waitFor();
    await outside.goto(daegi.page("no-such-item"));
    await outside.getByRole("button", { name: "Try again" }).click();
    await outside.getByRole("heading", { level: 1, name: "We can't find this line" }).waitFor();
    await outside.context().close();
    await session.end();
  });

  test("the estimate is a time of day with a range, and numbers have separators", async () => {
    const item = await line(0);
    const session = await visitor({ timezoneId: "Asia/Seoul", locale: "en-GB" });
    const estimate = { p50: 3_960, p90: 4_020 };
    await session.context.route("**/events?**", (route) => route.fulfill({ status: 503, body: "" }));
    await session.context.route("**/waiting-queue", async (route) => {
      const response = await route.fetch();
      const ticket = await response.json();
      await route.fulfill({ response, json: { ...ticket, position: 12_345, waitingCount: 1_234_567, lineState: "OPEN", etaSeconds: estimate } });
    });
    await session.context.route("**/waiting-queue/me*", (route) => route.abort());
    const page = await session.open(daegi.page(item));
    await expectPosition(page, "12,345");
    assert.match(await page.locator("#eta").textContent(), /^around \d{1,2}:\d[05] \(\d{1,2}:\d[05]\s?–\s?.*\d{1,2}:\d[05]\)$/);
    assert.equal(await page.title(), "No. 12,345 · Friday 8 pm concert");
    assert.equal(await page.locator("#behind").textContent(), "1,222,222");
    await session.end();
  });

  test("the operator's texts are in the language of the page, with line breaks, within 2 s of a change", async () => {
    const item = await line(1, { page: { message: { en: "Doors open at seven.", ko: "7시에 입장합니다." } } });
    const sessions = [await visitor(), await visitor({ locale: "ko-KR" }), await visitor({ locale: "th-TH" })];
    const pages = [];
    for (const session of sessions) pages.push(await session.open(daegi.page(item)));
    const shows = (page, text) => page.locator("#message").filter({ hasText: text }).waitFor();
    for (const [n, text] of ["Doors open at seven.", "7시에 입장합니다.", "Doors open at seven."].entries()) await shows(pages[n], text);
    for (const page of pages) await expectScreen(page, "still");
    const began = Date.now();
    await daegi.policy(item, { page: { message: { en: "Doors open at eight.\nBring your ticket.", ko: "8시에 입장합니다." } } });
    await Promise.all(["Doors open at eight.", "8시에 입장합니다.", "Bring your ticket."].map((text, n) => shows(pages[n], text)));
    const took = Date.now() - began;
    assert.ok(took < 2_000, `${took} ms`);
    assert.equal(await pages[0].locator("#message").evaluate((message) => message.innerText), "Doors open at eight.\nBring your ticket.");
    for (const session of sessions) await session.end();
  });

  test("a user chooses a language, which is remembered, and keeps the place", async () => {
    const item = await line(1);
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    await page.locator("#languages summary").click();
    await expectAccessible(page, "the languages");
    await page.getByRole("link", { name: "繁體中文" }).click();
    await page.getByRole("heading", { level: 1, name: "排隊已暫停" }).waitFor();
    await expectPosition(page, 2);
    await page.goto(daegi.page(item));
    await page.getByRole("heading", { level: 1, name: "排隊已暫停" }).waitFor();
    assert.equal((await daegi.line(item)).waitingCount, 2, "the same ticket");
    await session.end();
  });

  test("each language has its page without English texts", async () => {
    const item = await line(1);
    for (const [locale, headline] of [
      ["ko-KR", "잠시 멈췄습니다"],
      ["ja-JP", "入場を一時停止しています"],
      ["zh-CN", "排队已暂停"],
      ["zh-HK", "排隊已暫停"],
      ["es-MX", "La fila está en pausa"],
      ["vi-VN", "Hàng chờ đang tạm dừng"],
      ["th-TH", "คิวหยุดชั่วคราว"],
    ]) {
      const session = await visitor({ locale, viewport: { width: 360, height: 740 } });
      const page = await session.open(daegi.page(item));
      await page.getByRole("heading", { level: 1, name: headline }).waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${locale}: nothing is cut off`);
      assert.doesNotMatch(await page.locator("#live").innerText(), /\b(line|place|you)\b/i);
      await expectAccessible(page, locale);
      await session.end();
    }
  });

  test("a place that grows is explained", async () => {
    const item = await line(4);
    const session = await visitor();
    const positions = [5, 3, 6];
    await session.context.route("**/events?**", (route) => route.fulfill({ status: 503, body: "" }));
    await session.context.route("**/waiting-queue/me*", async (route) => {
      const response = await route.fetch();
      const position = positions.length > 1 ? positions.shift() : positions[0];
      await route.fulfill({ response, json: { ...(await response.json()), position, lineState: "OPEN", pollAfterMs: 300 } });
    });
    const page = await session.open(daegi.page(item));
    await page.locator("#notice").filter({ hasText: "You are number 6 now instead of 3; nobody new passed you." }).waitFor();
    await session.end();
  });

  test("the choice of alerts is remembered, and a permission is asked for on a click only", async () => {
    const item = await line(1);
    const session = await visitor({ permissions: [] });
    await session.context.addInitScript(() => {
      globalThis.asked = 0;
      Notification.requestPermission = async () => {
        globalThis.asked++;
        return "denied";
      };
    });
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    const box = (name) => page.getByRole("checkbox", { name });
    assert.ok(await box("Sound at my turn").isChecked());
    await box("Sound at my turn").uncheck();
    assert.equal(await page.evaluate(() => globalThis.asked), 0);
    await box("Notify me").click();
    await page.locator("#notice").filter({ hasText: "blocks notifications" }).waitFor();
    assert.equal(await box("Notify me").isChecked(), false);
    assert.equal(await page.evaluate(() => globalThis.asked), 1);
    await page.reload();
    await expectPosition(page, 2);
    assert.equal(await box("Sound at my turn").isChecked(), false);
    await session.end();
  });

  test("a phone on its side shows the place without scrolling", async () => {
    const item = await line(3, { page: { message: "Doors open at eight." } });
    const session = await visitor({ viewport: { width: 844, height: 390 } });
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 4);
    for (const id of ["headline", "message", "position", "eta"]) {
      const bottom = await page.locator(`#${id}`).evaluate((element) => element.getBoundingClientRect().bottom);
      assert.ok(bottom <= 390, `#${id} ends at ${bottom}`);
    }
    await expectAccessible(page, "a phone on its side");
    await session.end();
  });

  test("a code hands the place over to another device once, and the first one says so", async () => {
    const item = await line(2);
    const [phone, desk, third] = [await visitor({ viewport: { width: 390, height: 844 } }), await visitor(), await visitor()];
    await phone.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: daegi.origin });
    const first = await phone.open(daegi.page(item));
    await expectPosition(first, 3);
    const before = phone.requests.length;
    assert.ok(!phone.requests.some((url) => url.includes("wait-more")), "loaded on a click only");
    await first.getByRole("button", { name: "Continue on another device" }).click();
    const dialog = first.getByRole("dialog", { name: "Continue on another device" });
    await dialog.getByRole("img", { name: "QR code" }).waitFor();
    await expectAccessible(first, "the code");
    await dialog.getByRole("button", { name: "Copy link" }).click();
    await dialog.getByRole("button", { name: "Link copied" }).waitFor();
    const link = await first.evaluate(() => navigator.clipboard.readText());
    assert.ok(phone.requests.slice(before).every((url) => !url.includes("from=")), "the code is in no URL that is sent");
    const second = await desk.open(link);
    await expectPosition(second, 3);
    await second.locator("#notice").filter({ hasText: "the place from your other device" }).waitFor();
    assert.equal((await stored(second, item)).token, (await stored(first, item)).token);
    assert.ok(!second.url().includes("from="), "the address no longer has the code");
    await dialog.filter({ hasText: "open on the other device" }).waitFor();
    assert.equal((await daegi.line(item)).waitingCount, 3, "one ticket");
    const late = await third.open(link);
    await late.locator("#notice").filter({ hasText: "already used" }).waitFor();
    await expectPosition(late, 4);
    for (const session of [phone, desk, third]) await session.end();
  });

  test("a page that has a place asks before it takes another one", async () => {
    const item = await line(0);
    const [phone, desk] = [await visitor(), await visitor()];
    const [first, second] = [await phone.open(daegi.page(item)), await desk.open(daegi.page(item))];
    await Promise.all([expectScreen(first, "still"), expectScreen(second, "still")]);
    const { token } = await stored(first, item);
    const headers = { authorization: `Bearer ${token}` };
    const issue = async () => (await (await fetch(`${daegi.origin}/api/v1/item/${item}/waiting-queue/me/handover`, { method: "POST", headers })).json()).code;
    const open = async (code) => {
      await second.goto("about:blank");
      await second.goto(`${daegi.page(item)}#from=${encodeURIComponent(code)}`);
      await second.getByRole("dialog", { name: "Continue with the place from the other device?" }).waitFor();
    };
    const own = (await stored(second, item)).token;
    await open(await issue());
    await expectAccessible(second, "the question");
    await second.getByRole("button", { name: "Stay" }).click();
    await expectScreen(second, "still");
    assert.equal((await stored(second, item)).token, own);
    await open(await issue());
    await second.getByRole("button", { name: "Continue", exact: true }).click();
    await expectScreen(second, "still");
    assert.equal((await stored(second, item)).token, token);
    await eventually("the other place is given up", async () => (await daegi.line(item)).waitingCount === 1);
    for (const session of [phone, desk]) await session.end();
  });

  test("an item's own style applies and loads nothing", async () => {
    const item = await line(1, { page: { css: "h1 { color: rgb(1, 2, 3); }\n#position { letter-spacing: .1em; }" } });
    const session = await visitor();
    const page = await session.open(daegi.page(item));
    await expectPosition(page, 2);
    assert.equal(await page.locator("h1").evaluate((head) => getComputedStyle(head).color), "rgb(1, 2, 3)");
    for (const css of ["@import url(x.css);", "h1{background:url(https://elsewhere.example/x)}"]) {
      await assert.rejects(daegi.policy(item, { page: { css } }), /page\.css/);
    }
    await session.end();
  });

  test("only the operator's origins may frame the page", async () => {
    const item = await line(1);
    const framed = async () => {
      const session = await BrowserSession.open(browser, [daegi.origin, shop.origin]);
      const page = await session.open(`${shop.origin}/`);
      await page.evaluate((address) => {
        const frame = document.createElement("iframe");
        [frame.src, frame.id] = [address, "line"];
        document.body.append(frame);
      }, daegi.page(item));
      return { session, position: page.frameLocator("#line").locator("#position") };
    };
    const refused = await framed();
    await eventually("the frame is blocked", async () => refused.session.errors.some((error) => error.includes("frame-ancestors")) || null);
    await refused.session.context.close();
    await daegi.policy(item, { page: { frameAncestors: [shop.origin] } });
    await eventually("the policy of the page names the shop", async () => (await fetch(daegi.page(item))).headers.get("content-security-policy").includes(shop.origin));
    const { session, position } = await framed();
    await position.filter({ hasText: /^2$/ }).waitFor();
    await session.end();
  });

  test("the address of the host answers a person", async () => {
    const session = await visitor();
    const page = await session.open(`${daegi.origin}/`);
    await page.getByRole("heading", { level: 1, name: "This is a waiting room" }).waitFor();
    await expectAccessible(page, "the root");
    await session.end();
  });
});
