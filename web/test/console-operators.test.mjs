// Operators with roles in the console, in a real browser, against the real binary.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectAccessible, chromiumPath, launch, BrowserSession } from "./browser.mjs";
import { ADMIN, DaegiProcess } from "./daegi.mjs";

const path = chromiumPath("operators");
let [browser, daegi] = [];

async function open(token, route = "#/", options = {}) {
  const session = await BrowserSession.open(browser, [daegi.internal], options);
  const page = await session.open(`${daegi.internal}/admin/#token=${token}`);
  await page.locator("header.top").waitFor();
  await page.goto(`${daegi.internal}/admin/${route}`);
  return { session, page };
}

/** Creates an operator in the console and returns the token that it shows. */
async function create(page, name, role) {
  await page.getByRole("button", { name: "New operator…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByLabel("Role").selectOption(role);
  await dialog.getByRole("button", { name: "Create operator" }).click();
  const token = await dialog.getByLabel(`The token of ${name}`).inputValue();
  await expectAccessible(page, "the token of an operator");
  await dialog.getByRole("button", { name: "Close" }).click();
  return token;
}

describe("operators in the console", { skip: !path }, () => {
  before(async () => {
    [browser, daegi] = await Promise.all([launch(path), DaegiProcess.open()]);
    await daegi.stock("concert", 10);
  });
  after(async () => {
    await browser?.close();
    await daegi?.end();
  });

  test("a viewer changes nothing, an operator resets nothing, and a removed one is signed out", async () => {
    const admin = await open(ADMIN, "#/operators");
    const viewer = await create(admin.page, "vera", "viewer");
    const operator = await create(admin.page, "otto", "operator");
    await admin.page.getByRole("cell", { name: "otto", exact: true }).waitFor();
    await expectAccessible(admin.page, "operators");

    const seen = await open(viewer, "#/line/concert");
    await seen.page.getByText("vera · Viewer").waitFor();
    assert.equal(await seen.page.getByRole("button", { name: "Pause" }).isDisabled(), true);
    assert.equal(await seen.page.getByLabel("Stock", { exact: true }).isDisabled(), true);
    assert.equal(await seen.page.getByRole("link", { name: "Operators" }).count(), 0);

    const run = await open(operator, "#/line/concert");
    assert.equal(await run.page.getByRole("button", { name: "Reset…" }).isDisabled(), true);
    await run.page.getByRole("button", { name: "Pause" }).click();
    await run.page.getByRole("cell", { name: "otto", exact: true }).first().waitFor();

    await admin.page.getByRole("button", { name: "Remove vera" }).click();
    await admin.page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await seen.page.getByRole("heading", { name: "daegi Console" }).waitFor();
    await seen.page.getByLabel("Token").waitFor();
    await Promise.all([admin, seen, run].map(({ session }) => session.end()));
  });

  test("the form is in Korean, too, and a name that is taken is refused at its field", async () => {
    const { session, page } = await open(ADMIN, "#/operators", { locale: "ko-KR" });
    await page.getByRole("button", { name: "새 운영자…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("이름").fill("otto");
    await dialog.getByRole("button", { name: "운영자 만들기" }).click();
    await dialog.getByRole("alert").filter({ hasText: "there is an operator otto already" }).waitFor();
    await expectAccessible(page, "a refused operator");
    await session.end();
  });
});
