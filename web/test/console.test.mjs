// The operator's console in a real browser, against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, eventually, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("the console");
let [browser, daegi] = [];
let items = 0;

/** Creates an item for one test, with users in its line. */
async function line(users, policy = {}, name = "Friday 8 pm concert") {
  const item = `item-${++items}`;
  await daegi.stock(item, 1000, name);
  await daegi.policy(item, { graceSeconds: 0, ...policy });
  await daegi.joinOthers(item, users);
  return item;
}

const operator = (options) => BrowserSession.open(browser, [daegi.internal], options);
const figure = (page, id) => async () => Number((await page.locator(`#${id}`).textContent()).replaceAll(",", ""));
const becomes = async (what, read, wanted) => eventually(what, async () => (await read()) === wanted);

/** Opens the console and signs in. */
async function signedIn(session, route = "") {
  const page = await session.open(`${daegi.internal}/admin/`);
  await page.getByLabel("Token").fill(ADMIN);
  await page.getByLabel("Your name").fill("Kim 김");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  if (route) await page.goto(`${daegi.internal}/admin/#${route}`);
  return page;
}

describe("the console", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("the console needs the token and drops it with the session", async () => {
    const session = await operator();
    const page = await session.open(`${daegi.internal}/admin`);
    await page.getByLabel("Token").fill("guess");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").filter({ hasText: "not valid" }).waitFor();
    await expectAccessible(page, "signing in");
    await page.getByLabel("Token").fill(ADMIN);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "For every line" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    await page.reload();
    await page.getByLabel("Token").waitFor();
    await page.goto(`${daegi.internal}/admin/#token=${ADMIN}`);
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    assert.equal(new URL(page.url()).hash, "", "the token does not stay in the address");
    await session.end();
  });

  test("the console follows the URL from its first frame", async () => {
    const item = await line(0, {}, "Hamlet");
    const session = await operator();
    const goImmediately = (route) => {
      const drawn = new MutationObserver(() => {
        if (!document.querySelector("header.top")) return;
        drawn.disconnect();
        location.hash = route;
      });
      drawn.observe(document, { childList: true, subtree: true });
    };
    await session.context.addInitScript(goImmediately, `/line/${item}`);
    const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
    await page.getByRole("heading", { level: 1, name: "Hamlet" }).waitFor();
    await session.end();
  });

  test("a changed quota moves the line", async () => {
    await daegi.quota(0);
    const item = await line(40, { tokensPerTick: null });
    const session = await operator();
    const page = await signedIn(session);
    const row = page.getByRole("row").filter({ hasText: item });
    await row.getByText("Paused").waitFor();
    const quota = page.getByRole("spinbutton", { name: "Let in per tick" });
    await quota.fill("2");
    await quota.press("Enter");
    await page.getByRole("status").filter({ hasText: "Let in per tick is now 2." }).waitFor();
    await row.getByText("Open").waitFor();
    await eventually("the line is empty", async () => (await daegi.line(item)).waitingCount === 0);
    await row.locator("td.strong").filter({ hasText: /^0$/ }).waitFor();
    assert.equal((await daegi.line(item)).enteredCount, 40);
    await quota.fill("0");
    await page.getByRole("button", { name: "Set" }).first().click();
    await row.getByText("Paused").waitFor();
    await page.getByRole("link", { name: "Audit log" }).click();
    const entry = page.getByRole("row").filter({ hasText: "Kim 김" }).filter({ hasText: "tokenCountToMove 2" });
    await entry.first().waitFor();
    await expectAccessible(page, "the audit log");
    await session.end();
    await daegi.quota(1);
  });

  test("quota, capacity, stock, pause and reset of a line take effect immediately", async () => {
    const item = await line(30, { tokensPerTick: 0 });
    const session = await operator();
    const page = await signedIn(session, `/line/${item}`);
    const [waiting, inside, stock] = ["waiting", "inside", "stock"].map((id) => figure(page, id));
    await becomes("all users wait", waiting, 30);
    const set = async (name, value) => {
      await page.getByRole("spinbutton", { name }).fill(value);
      await page.getByRole("spinbutton", { name }).press("Enter");
    };
    await set("At most inside", "5");
    await set("Let in per tick", "3");
    await becomes("five users are admitted", inside, 5);
    await becomes("the others wait", waiting, 25);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await set("Stock", "777");
    await becomes("the stock is set", stock, 777);
    await eventually("the public line is paused", async () => (await daegi.line(item)).lineState === "PAUSED");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByRole("button", { name: "Reset…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    assert.equal((await daegi.line(item)).waitingCount, 25, "all users still wait");
    await page.getByRole("button", { name: "Reset…" }).click();
    await page.getByRole("button", { name: "Send 25 people away" }).click();
    await becomes("the line is empty", waiting, 0);
    assert.equal(await inside(), 5, "entries stay");
    await page.getByRole("row").filter({ hasText: "reset" }).filter({ hasText: "waitingCount 25" }).waitFor();
    await page.getByRole("list", { name: "Recent events" }).getByText("let in").first().waitFor();
    await session.end();
  });

  test("policy fields are saved together, and a rejection shows its reason", async () => {
    const item = await line(0);
    const session = await operator();
    const page = await signedIn(session, `/line/${item}`);
    const rules = page.getByRole("region", { name: "Rules" });
    await rules.getByLabel("An entry lasts, s").fill("0");
    await rules.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").filter({ hasText: "passTtlSeconds" }).waitFor();
    await rules.getByLabel("An entry lasts, s").fill("90");
    await rules.getByLabel("Joining again").selectOption("requeue");
    await rules.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").filter({ hasText: "Rules saved." }).waitFor();
    const { policy } = await daegi.admin("GET", item);
    assert.deepEqual([policy.passTtlSeconds, policy.onRejoin, policy.graceSeconds], [90, "requeue", 0]);
    await session.end();
  });

  test("input typed during a save is kept", async () => {
    const item = await line(0);
    const session = await operator();
    const page = await signedIn(session, `/line/${item}`);
    const rules = page.getByRole("region", { name: "Rules" });
    const [lasts, grace] = ["An entry lasts, s", "Unseen is put aside after, s"].map((name) => rules.getByLabel(name));
    const quota = page.getByRole("spinbutton", { name: "Let in per tick" });
    const saving = async (save, meanwhile, done) => {
      let go;
      const held = new Promise((free) => (go = free));
      await page.route("**/policy", (route) => held.then(() => route.continue()));
      const sent = page.waitForRequest("**/policy");
      await save();
      await sent;
      await meanwhile();
      go();
      await page.getByRole("status").filter({ hasText: done }).waitFor();
      await page.unroute("**/policy");
    };
    await lasts.fill("90");
    await grace.fill("20");
    await saving(() => rules.getByRole("button", { name: "Save" }).click(), () => lasts.fill("95"), "Rules saved.");
    assert.equal(await lasts.inputValue(), "95");
    await rules.getByRole("button", { name: "Save" }).click();
    await eventually("both are saved", async () => {
      const { policy } = await daegi.admin("GET", item);
      return policy.passTtlSeconds === 95 && policy.graceSeconds === 20;
    });
    await quota.fill("3");
    await saving(() => quota.press("Enter"), () => quota.fill("4"), "Let in per tick is now 3.");
    assert.equal(await quota.inputValue(), "4");
    assert.equal((await daegi.admin("GET", item)).policy.tokensPerTick, 3);
    await session.end();
  });

  test("the toast shows the result and can reopen a closed line", async () => {
    const item = await line(3, { tokensPerTick: 0 });
    const session = await operator();
    const page = await signedIn(session, `/line/${item}`);
    const toast = (text) => page.getByRole("status").filter({ hasText: text }).waitFor();
    const open = page.getByRole("switch", { name: "The line is open" });
    await open.click();
    await toast("Line closed. Nobody can join.");
    await page.locator("header.line").getByText("Closed").waitFor();
    await expectAccessible(page, "a toast with an undo");
    await page.getByRole("button", { name: "Undo" }).click();
    await toast("Line open. People can join.");
    await eventually("the line is open", () => open.isChecked());
    await page.getByRole("button", { name: "Pause" }).click();
    await toast("Paused. 3 people keep waiting.");
    await page.getByRole("button", { name: "Resume" }).click();
    await toast("Resumed. 3 people are waiting.");
    await session.end();
  });

  test("the waiting page shows the branding of the policy", async () => {
    const item = await line(0);
    const session = await operator();
    const page = await signedIn(session, `/line/${item}`);
    const form = page.getByRole("region", { name: "Waiting page" });
    await form.getByLabel("Name on the page", { exact: true }).fill("The Opera");
    await form.getByLabel("Message on the waiting page", { exact: true }).fill("Doors open at seven.");
    await form.getByLabel("A colour of its own").check();
    await form.getByLabel("Colour", { exact: true }).fill("#7a1f5c");
    const picture = (size) => ({ name: "logo.png", mimeType: "image/png", buffer: Buffer.alloc(size, 1) });
    await form.getByLabel("Logo").setInputFiles(picture(6001));
    await form.getByRole("alert").filter({ hasText: "more than 6 KB" }).waitFor();
    await form.getByLabel("Logo").setInputFiles(picture(6000));
    await form.getByRole("img", { name: "The logo now" }).waitFor();
    await expectAccessible(page, "the look of a page");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").filter({ hasText: "Waiting page saved." }).waitFor();
    const { policy } = await daegi.admin("GET", item);
    assert.deepEqual([policy.page.title, policy.page.message, policy.page.accent], ["The Opera", "Doors open at seven.", "#7a1f5c"]);
    assert.match(policy.page.logo, /^data:image\/png;base64,/);
    const shown = await (await fetch(`${daegi.origin}/wait/${item}`)).text();
    assert.ok(shown.includes("The Opera") && shown.includes("Doors open at seven.") && shown.includes(policy.page.logo));
    await form.getByRole("button", { name: "Remove the logo" }).click();
    await form.getByLabel("A colour of its own").uncheck();
    await form.getByRole("button", { name: "Save" }).click();
    await eventually("logo and colour are gone", async () => {
      const { page } = (await daegi.admin("GET", item)).policy;
      return page.logo === null && page.accent === null && page.title === "The Opera";
    });
    await session.end();
  });

  test("the charts of a line include its history", async () => {
    const item = await line(60, { tokensPerTick: 1 });
    const session = await operator();
    const page = await signedIn(session, `/line/${item}`);
    await page.locator(".chart").nth(5).waitFor();
    const drawn = page.getByRole("img", { name: /^People per second: Joined [\d.]+, Let in [1-9]/ });
    await drawn.waitFor();
    await page.getByRole("button", { name: "30 min" }).click();
    await page.locator(".chart canvas").first().waitFor();
    await expectAccessible(page, "a line");
    await session.end();
  });

  test("a line can be created and found among many", async () => {
    const session = await operator();
    const page = await signedIn(session);
    await page.getByRole("button", { name: "New line" }).click();
    await page.getByRole("textbox", { name: "Id" }).fill("opera-1");
    await page.getByRole("textbox", { name: "Name" }).fill("The Opera");
    await page.getByRole("dialog").getByRole("spinbutton").fill("5");
    await page.getByRole("button", { name: "Create" }).click();
    // Inputs behind a dialog cannot be focused.
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("opera");
    await page.getByRole("row").filter({ hasText: "The Opera" }).waitFor();
    await eventually("only that one is shown", async () => (await page.locator(".lines tbody tr").count()) === 1);
    await expectAccessible(page, "the lines");
    await page.getByRole("link", { name: "The Opera" }).click();
    await page.getByRole("heading", { level: 1, name: "The Opera" }).waitFor();
    await session.end();
  });

  test("a thousand lines are searched and paged by fifty", async () => {
    const ids = Array.from({ length: 1000 }, (_, nth) => `many-${String(nth).padStart(4, "0")}`);
    for (let from = 0; from < ids.length; from += 50) {
      await Promise.all(ids.slice(from, from + 50).map((id) => daegi.stock(id, 10, `One of many ${id}`)));
    }
    await daegi.joinOthers("many-0777", 30);
    const session = await operator();
    const page = await signedIn(session);
    const rows = page.locator(".lines tbody tr");
    await page.getByText(/^1–50 of 1,0\d\d$/).waitFor();
    assert.equal(await rows.count(), 50);
    await rows.filter({ hasText: "many-0777" }).waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText(/^51–100 of 1,0\d\d$/).waitFor();
    await page.getByRole("searchbox").fill("MANY-0999");
    await eventually("one is found", async () => (await rows.count()) === 1);
    await rows.filter({ hasText: "many-0999" }).waitFor();
    await session.end();
  });

  test("the console works in Korean, on a phone and in dark mode", async () => {
    const item = await line(3);
    for (const options of [{ locale: "ko-KR" }, { viewport: { width: 390, height: 844 } }, { colorScheme: "dark" }]) {
      const session = await operator(options);
      const page = await session.open(`${daegi.internal}/admin/#token=${ADMIN}`);
      if (options.locale) await page.getByRole("button", { name: "로그아웃" }).waitFor();
      for (const route of ["#/", `#/line/${item}`]) {
        await page.goto(`${daegi.internal}/admin/${route}`);
        await page.locator("main .figures").waitFor();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.ok(!wide, `${route} does not scroll sideways: ${JSON.stringify(options)}`);
        await expectAccessible(page, `${route} ${JSON.stringify(options)}`);
      }
      await session.end();
    }
  });

  test("the console shows an unavailable server and recovers", async () => {
    const session = await operator();
    const page = await signedIn(session);
    await daegi.end();
    await page.getByRole("alert").filter({ hasText: "No answer" }).waitFor();
    await daegi.start();
    await page.getByRole("alert").filter({ hasText: "No answer" }).waitFor({ state: "hidden" });
    await session.end();
  });
});
