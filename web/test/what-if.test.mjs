// The page "What if" of the operator's console, in a real browser, against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("what if");
let [browser, daegi] = [];

async function open(options = {}) {
  const session = await BrowserSession.open(browser, [daegi.internal], { timezoneId: "UTC", ...options });
  const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
  await page.locator("header.top").waitFor();
  await page.goto(`${daegi.internal}/admin/#/what-if`);
  return { session, page };
}

describe("what if", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("a sale is simulated, and another setting has another result", async () => {
    const { session, page } = await open();
    const value = (name) => page.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) }).getByRole("cell").innerText();
    await page.getByLabel("Visitors", { exact: true }).fill("600");
    await page.getByLabel("For sale", { exact: true }).fill("100");
    await page.getByRole("button", { name: "Simulate" }).click();
    await page.getByRole("heading", { name: "What would happen" }).waitFor();
    assert.equal(await value("Bought"), "100");
    assert.equal(await value("Unsold"), "0");
    await expectAccessible(page, "a simulated sale");
    await page.getByLabel("For sale", { exact: true }).fill("50");
    await page.getByRole("button", { name: "Simulate" }).click();
    await page.getByRole("cell", { name: "50", exact: true }).first().waitFor();
    assert.equal(await value("Bought"), "50");
    await session.end();
  });

  test("a refused sale shows the reason, in Korean too", async () => {
    const { session, page } = await open({ locale: "ko-KR" });
    await page.locator("input[id$=graceSeconds]").fill("3");
    await page.getByRole("button", { name: "모의 실행" }).click();
    await page.getByRole("alert").filter({ hasText: "graceSeconds" }).waitFor();
    await expectAccessible(page, "a refused sale");
    await session.end();
  });
});
