// `daegi --demo` in a real browser: a user buys in the shop, and the console shows it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("the demo shop");
let [browser, daegi] = [];

describe("the demo shop", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.demo()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("a user joins, is admitted and buys a ticket, and the console shows it", { timeout: 120_000 }, async () => {
    const session = await BrowserSession.open(browser, [daegi.origin]);
    const page = await session.open(`${daegi.origin}/shop`);
    await page.locator("#left").filter({ hasText: /^\d+$/ }).waitFor();
    await expectAccessible(page, "the shop");
    await page.getByRole("link", { name: "Buy a ticket" }).click();
    await page.waitForURL(/\/wait\/concert$/);
    await page.locator("#position").filter({ hasText: /\d/ }).waitFor({ state: "attached" });
    // The line admits about three users per second, and most simulated visitors join later.
    await page.waitForURL(/\/shop\/checkout\?pass=/, { timeout: 50_000 });
    await page.getByRole("heading", { name: "Your turn" }).waitFor();
    await expectAccessible(page, "the checkout");
    await page.getByRole("button", { name: "Pay" }).click();
    await page.getByRole("heading", { name: "Thank you" }).waitFor();
    await expectAccessible(page, "the thanks");
    const left = Number(await page.locator("#left").textContent());
    assert.ok(left < 500, `${left} are left`);
    const order = page.url();
    await page.reload();
    await page.getByRole("heading", { name: "Thank you" }).waitFor();
    assert.equal(page.url(), order, "a reload buys nothing");
    await session.end();

    const operator = await BrowserSession.open(browser, [daegi.internal]);
    const console = await operator.open(`${daegi.internal}/admin/#token=${ADMIN}`);
    await console.getByRole("link", { name: "Friday 8 pm concert" }).click();
    await console.getByRole("img", { name: /^People per second: Joined [\d.]+, Let in [\d.]+, Completed [\d.]+$/ }).waitFor();
    await console.getByRole("link", { name: "Lines" }).click();
    await console.getByText(/item\.changed [\d,]+ to read/).waitFor();
    await operator.end();
  });

  test("a Korean browser gets the shop in Korean", async () => {
    const session = await BrowserSession.open(browser, [daegi.origin], { locale: "ko-KR" });
    const page = await session.open(`${daegi.origin}/shop`);
    await page.getByRole("link", { name: "표 사기" }).waitFor();
    await page.locator("#crowd").filter({ hasText: /\d+명이 (다음 표를 )?기다립니다/ }).waitFor();
    await expectAccessible(page, "the shop in Korean");
    await session.end();
  });

  test("the checkout rejects requests without a pass", async () => {
    const session = await BrowserSession.open(browser, [daegi.origin]);
    for (const address of ["/shop/checkout", "/shop/checkout?pass=made-up"]) {
      const page = await session.open(`${daegi.origin}${address}`);
      await page.getByRole("heading", { name: "One after the other" }).waitFor();
      await expectAccessible(page, address);
    }
    await session.end();
    const bought = await fetch(`${daegi.origin}/shop/buy?pass=made-up`, { method: "POST", redirect: "manual" });
    assert.equal(bought.status, 401);
  });
});
