// Takes the pictures of the console and the shop in docs/screenshots:
// `node web/test/console-screenshots.mjs [folder]`. Takes about five minutes, because charts need history.

import { fileURLToPath } from "node:url";
import { chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, DaegiProcess } from "./daegi.mjs";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../docs/screenshots", import.meta.url));
const PAST_MS = Number(process.env.PAST_MS ?? 280_000);
const DESK = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };

const [browser, daegi] = await Promise.all([launch(chromiumPath()), DaegiProcess.demo()]);
const began = Date.now();

/** Lines beside that of the demo, so that there is something to search. */
const OTHERS = [
  ["opera", "Opera: The Night Train", 1200, 84, {}],
  ["derby", "City derby, north stand", 18_000, 230, { tokensPerTick: 1 }],
  ["course-101", "CS 101, spring term", 240, 61, { maxActive: 12 }],
  ["sneaker", "Sneaker drop no. 7", 0, 0, {}],
  ["museum", "Museum late night", 400, 12, { mode: "auto" }],
];
for (const [id, name, stock, users, policy] of OTHERS) {
  await daegi.stock(id, Math.max(1, stock), name);
  await daegi.policy(id, { graceSeconds: 0, passTtlSeconds: 1200, ...policy });
  await daegi.joinOthers(id, users);
  if (stock === 0) await daegi.stock(id, 0, name);
}
await daegi.admin("POST", "opera/pause");

async function screenshot(name, route, options, prepare) {
  const session = await BrowserSession.open(browser, [daegi.internal, daegi.origin], options);
  const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
  await page.goto(`${daegi.internal}/admin/${route}`);
  await page.locator(route === "#/" ? "main .lines" : "header.line").waitFor();
  await prepare?.(page);
  await page.waitForTimeout(4000);
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: Boolean(options.fullPage) });
  await session.context.close();
}

const shop = await BrowserSession.open(browser, [daegi.origin], PHONE);
const window = await shop.open(`${daegi.origin}/shop`);
await window.waitForTimeout(2500);
await window.screenshot({ path: `${folder}/shop.png` });
await shop.context.close();

// Some changes for the audit log.
const kim = { authorization: `Bearer ${ADMIN}`, "x-operator": "Kim", "content-type": "application/json" };
const change = (path, method, body) =>
  fetch(`${daegi.internal}/internal/admin/v1/${path}`, { method, headers: kim, body: JSON.stringify(body) });
await change("waiting-item/concert/policy", "PATCH", { maxActive: 24 });
await new Promise((later) => setTimeout(later, PAST_MS / 2));
await change("waiting-item/concert/policy", "PATCH", { maxActive: 20 });
await change("waiting-queue/token-count-to-move", "PUT", { tokenCountToMove: 8 });
await new Promise((later) => setTimeout(later, Math.max(0, PAST_MS - (Date.now() - began))));

await screenshot("console-lines", "#/", DESK);
await screenshot("console-line", "#/line/concert", { viewport: { width: 1280, height: 1180 } });
await screenshot("console-dark", "#/line/concert", { ...DESK, colorScheme: "dark" });
await screenshot("console-phone", "#/", PHONE);
await screenshot("console-phone-line", "#/line/concert", PHONE);
await screenshot("console-korean", "#/line/concert", { ...DESK, locale: "ko-KR" });

await browser.close();
await daegi.end();
