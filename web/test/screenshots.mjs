// Takes the pictures in docs/screenshots: `node web/test/screenshots.mjs [folder]`. With `all` after the folder also every
// state in all languages, to look at.

import { fileURLToPath } from "node:url";
import { chromiumPath, launch, expectScreen, BrowserSession } from "./browser.mjs";
import { Shop } from "./shop.mjs";
import { DaegiProcess } from "./daegi.mjs";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../docs/screenshots", import.meta.url));
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };
const DESK = { viewport: { width: 1100, height: 760 }, deviceScaleFactor: 1 };

const [browser, daegi, shop] = await Promise.all([launch(chromiumPath()), DaegiProcess.open(), Shop.open()]);

/** A line of this many, with one in the middle who looks. */
async function picture(name, { ahead = 0, behind = 0, policy = {}, meanwhile, kind = "waiting", settleMs = kind === "turn" ? 900 : 6500, ...options }) {
  const item = name;
  const title = options.locale === "ko-KR" ? "금요일 저녁 8시 콘서트" : "Friday 8 pm concert";
  await daegi.stock(item, 5000, title);
  await daegi.policy(item, { tokensPerTick: 1, maxActive: 1, entryUrl: shop.entryUrl, ...policy });
  await daegi.joinOthers(item, ahead + 1);
  const session = await BrowserSession.open(browser, [daegi.origin, shop.origin], { ...PHONE, ...options });
  const page = await session.open(daegi.page(item));
  if (options.javaScriptEnabled === false) await page.getByRole("button").click();
  else await expectScreen(page, kind === "turn" ? "turn" : "waiting");
  await daegi.joinOthers(item, behind);
  await meanwhile?.(item, page);
  if (options.javaScriptEnabled === false) await page.reload();
  else await expectScreen(page, kind);
  await page.waitForTimeout(settleMs);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await session.context.close();
}

/** A line that has admitted for some seconds, so that it has an estimate. */
const moving = async (item) => {
  await daegi.policy(item, { tokensPerTick: 1, maxActive: 20 });
};
const pause = (item) => daegi.admin("POST", `${item}/pause`);
const sellOut = (item) => daegi.stock(item, 0);

await picture("page-light", { ...DESK, ahead: 60, behind: 32, meanwhile: moving });
await picture("page-dark", { ...DESK, ahead: 60, behind: 32, meanwhile: moving, colorScheme: "dark" });
await picture("page-phone", { ahead: 160, behind: 32, meanwhile: moving });
await picture("page-korean", { ahead: 60, behind: 32, meanwhile: moving, locale: "ko-KR" });
await picture("page-sold-out", { ahead: 40, behind: 12, kind: "still", meanwhile: sellOut });
await picture("page-paused", { ahead: 40, behind: 12, kind: "still", meanwhile: pause, colorScheme: "dark" });
await picture("page-turn", { kind: "turn", policy: { maxActive: null, passTtlSeconds: 300 } });
await picture("page-no-script", { ahead: 20, javaScriptEnabled: false });
await picture("page-own-look", { ahead: 60, behind: 9, meanwhile: moving, policy: { page: { accent: "#7a2e8e", title: "Moonlight Festival" } } });

/** A line with a lobby whose order is drawn: a page that waits for the opening, then one that has checked its place. */
async function openingPictures() {
  const item = "page-lobby";
  await daegi.stock(item, 5000, "Friday 8 pm concert");
  const opening = { opensAt: new Date(Date.now() + 754_000).toISOString(), order: "draw" };
  await daegi.policy(item, { tokensPerTick: 1, maxActive: 1, graceSeconds: 0, entryUrl: shop.entryUrl, opening });
  await daegi.joinOthers(item, 60);
  const session = await BrowserSession.open(browser, [daegi.origin, shop.origin], PHONE);
  const page = await session.open(daegi.page(item));
  await expectScreen(page, "lobby");
  await daegi.joinOthers(item, 60);
  await page.waitForTimeout(2000);
  await page.screenshot({ path: `${folder}/page-lobby.png` });
  await daegi.admin("POST", `${item}/open`);
  await expectScreen(page, "waiting");
  await page.getByRole("button", { name: "Check the draw" }).click();
  await page.locator("#checks").evaluate((list) => (list.closest("details").open = true));
  await page.waitForTimeout(1500);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await page.screenshot({ path: `${folder}/page-draw.png` });
  await session.context.close();
}

/** A line with a lane: a page of an invited user. */
async function lanePicture() {
  const item = "page-lane";
  const lanes = [{ name: "members", weight: 30, first: false }];
  await daegi.stock(item, 5000, "Friday 8 pm concert");
  await daegi.policy(item, { tokensPerTick: 1, maxActive: 1, entryUrl: shop.entryUrl, lanes });
  await daegi.joinOthers(item, 60);
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const { codes } = await daegi.admin("POST", `${item}/invitations`, { lane: "members", count: 8, usesEach: 1, expiresAt });
  const [mine, ...others] = codes;
  for (const [n, code] of others.entries()) {
    const headers = { "user-id": `member-${n}`, "content-type": "application/json" };
    await fetch(`${daegi.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers, body: JSON.stringify({ code }) });
  }
  const session = await BrowserSession.open(browser, [daegi.origin, shop.origin], PHONE);
  const page = await session.open(`${daegi.page(item)}#code=${mine}`);
  await page.locator("#lane").filter({ hasText: "%" }).waitFor();
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${folder}/page-lane.png` });
  await session.context.close();
}

/** Every state on a phone, on its side, on a desk and in the dark, in all languages: to look at, and not kept. */
async function everyState() {
  const LANDSCAPE = { viewport: { width: 844, height: 390 } };
  const looks = { en: PHONE, desk: DESK, side: LANDSCAPE, dark: { ...PHONE, colorScheme: "dark" } };
  for (const locale of ["ko-KR", "ja-JP", "zh-CN", "zh-TW", "es-ES", "vi-VN", "th-TH"]) looks[locale] = { ...PHONE, locale };
  const policy = { page: { message: "Doors open at eight.\nBring your ticket.", links: { home: { url: "/" } } } };
  const end = (status) => async (_, page) => {
    const reply = (route) => route.fetch().then(async (response) => route.fulfill({ response, json: { ...(await response.json()), status, position: 0 } }));
    await page.route("**/events?**", (route) => route.fulfill({ status: 503, body: "" }));
    await page.route("**/waiting-queue/me*", reply);
    await page.reload();
  };
  const states = { waiting: ["waiting", moving], paused: ["still", pause], "sold-out": ["still", sellOut], turn: ["turn", null] };
  for (const status of ["COMPLETED", "EXPIRED", "ABANDONED", "REPLACED"]) states[status.toLowerCase()] = ["ended", end(status)];
  for (const [state, [kind, meanwhile]] of Object.entries(states)) {
    for (const [look, options] of Object.entries(looks)) {
      const ownPolicy = kind === "turn" ? { ...policy, maxActive: null } : policy;
      await picture(`state-${state}-${look}`, { ...options, ahead: kind === "turn" ? 0 : 20, behind: 9, kind, meanwhile: meanwhile ?? (async () => {}), policy: ownPolicy, settleMs: 700 });
    }
  }
}

await openingPictures();
await lanePicture();
if (process.argv[3] === "all") await everyState();

await browser.close();
await daegi.end();
shop.end();
