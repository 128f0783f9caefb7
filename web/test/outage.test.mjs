// A server that dies while people wait.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { at, chromiumPath, launch, Visitor } from "./browser.mjs";
import { redis, World } from "./world.mjs";

const path = chromiumPath();
let [browser, store, world] = [];

describe("the waiting page and a server that dies", { skip: !path }, () => {
  before(async () => {
    store = await redis();
    const line = "REDIS-SERVER IS MISSING: the page was not tested with a server that dies.";
    if (!store && process.env.CI === "true") throw new Error(line);
    if (!store) return console.log(line);
    [browser, world] = await Promise.all([launch(path), World.open(store.url)]);
  });
  after(async () => {
    await browser?.close();
    await world?.end();
    store?.end();
  });

  for (const signal of ["SIGKILL", "SIGTERM"]) {
    test(`${signal}: that is shown, and the place is the same afterwards`, async (context) => {
      if (!world) return context.skip("no redis-server");
      const item = `concert-${signal.toLowerCase()}`;
      await world.stock(item, 100);
      await world.crowd(item, 2);
      const person = await Visitor.of(browser, [world.origin]);
      const page = await person.open(world.page(item));
      await at(page, 3);
      await world.end(signal);
      await page.locator("#lost").waitFor({ state: "visible" });
      await world.start();
      await page.locator("#lost").waitFor({ state: "hidden" });
      await at(page, 3);
      assert.equal((await world.line(item)).waitingCount, 3, "nobody took a second place");
      await person.end();
    });
  }
});
