// The stored history and the visitors of a line in the console, from a crowd with known shares.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, eventually, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("visitors in the console");
const PHONE = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36";
const COMPUTER = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0";
let [browser, daegi] = [];

/** Joins 20 users: 15 with phones from Korea, 5 with computers from Japan. */
async function joinCrowd(item) {
  for (let n = 0; n < 20; n++) {
    const isPhone = n % 4 !== 0;
    const headers = {
      "user-id": `visitor-${n}`,
      "user-agent": isPhone ? PHONE : COMPUTER,
      "accept-language": isPhone ? "ko-KR" : "ja",
      "cf-ipcountry": isPhone ? "KR" : "JP",
      "daegi-client": n < 16 ? `page;load=${isPhone ? 700 : 1400}` : "sdk-java",
    };
    const response = await fetch(`${daegi.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers });
    assert.equal(response.status, 201);
  }
}

/** The rows of a table as texts. */
const rows = (page, dimension) => async () =>
  (await page.locator(`#visits-${dimension} tr`).allInnerTexts()).map((row) => row.trim().split(/\s*\t\s*|\n/).filter(Boolean));

describe("visitors in the console", { skip: !path }, () => {
  before(async () => {
    browser = await launch(path);
    daegi = await DaegiProcess.open("memory", ["--country-header", "cf-ipcountry"]);
    await daegi.stock("concert", 1000);
    await daegi.policy("concert", { graceSeconds: 0 });
    await joinCrowd("concert");
    // Pods write their counts every 5 s.
    await eventually("the visits are written", async () => (await daegi.admin("GET", "concert/visitors")).visits === 20);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("shares of devices, countries, languages and access are those of the crowd", async () => {
    const session = await BrowserSession.open(browser, [daegi.internal]);
    const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
    await page.goto(`${daegi.internal}/admin/#/line/concert`);
    await page.getByRole("heading", { name: "Visitors", exact: true }).waitFor();
    for (const [dimension, shares] of Object.entries({
      device: [["Phone", "75%", "15"], ["Computer", "25%", "5"]],
      browser: [["Chrome", "75%", "15"], ["Firefox", "25%", "5"]],
      country: [["South Korea", "75%", "15"], ["Japan", "25%", "5"]],
      language: [["Korean", "75%", "15"], ["Japanese", "25%", "5"]],
      access: [["Waiting page", "80%", "16"], ["Client library", "20%", "4"]],
    })) {
      assert.deepEqual(await rows(page, dimension)(), shares, dimension);
    }
    await expectAccessible(page, "visitors");
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Visitors as CSV" }).click();
    const download = await saved;
    assert.equal(download.suggestedFilename(), "concert-visitors.csv");
    const [stream, parts] = [await download.createReadStream(), []];
    for await (const part of stream) parts.push(part);
    assert.match(Buffer.concat(parts).toString(), /,device,phone,15\r\n/);
    await page.getByRole("button", { name: "30 days" }).click();
    await eventually("visits of 30 days", async () => (await rows(page, "device")())[0]?.[2] === "15");
    await session.end();
  });

  test("the card is in Korean for a Korean operator, on a phone", async () => {
    const viewport = { width: 390, height: 800 };
    const session = await BrowserSession.open(browser, [daegi.internal], { locale: "ko-KR", viewport });
    const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
    await page.goto(`${daegi.internal}/admin/#/line/concert`);
    await page.getByRole("heading", { name: "방문자", exact: true }).waitFor();
    assert.deepEqual((await rows(page, "country")())[0], ["대한민국", "75%", "15"]);
    await expectAccessible(page, "visitors in Korean");
    await session.end();
  });
});
