// The server dies or hangs while users wait.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectPosition, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { redis, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath();
let [browser, store, daegi] = [];

describe("the waiting page and a server that dies", { skip: !path }, () => {
  before(async () => {
    store = await redis();
    const line = "REDIS-SERVER IS MISSING: the page was not tested with a server that dies.";
    if (!store && process.env.CI === "true") throw new Error(line);
    if (!store) return console.log(line);
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open(store.url)]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
    store?.end();
  });

  for (const signal of ["SIGKILL", "SIGTERM"]) {
    test(`${signal}: the page shows the outage, and the position is the same afterwards`, async (context) => {
      if (!daegi) return context.skip("no redis-server");
      const item = `concert-${signal.toLowerCase()}`;
      await daegi.stock(item, 100);
      await daegi.joinOthers(item, 2);
      const session = await BrowserSession.open(browser, [daegi.origin]);
      const page = await session.open(daegi.page(item));
      await expectPosition(page, 3);
      await daegi.end(signal);
      await page.locator("#lost").waitFor({ state: "visible" });
      await daegi.start();
      await page.locator("#lost").waitFor({ state: "hidden" });
      await expectPosition(page, 3);
      assert.equal((await daegi.line(item)).waitingCount, 3, "no second ticket was issued");
      await session.end();
    });
  }
});
