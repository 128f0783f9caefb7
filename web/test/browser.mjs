// Chromium, with checks that apply to every page.

import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter } from "node:path";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Returns the path of Chromium, or null with a message if it is missing. Fails in CI. */
export function chromiumPath(what = "the waiting page") {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of NAMES) {
      try {
        accessSync(`${folder}/${name}`, constants.X_OK);
        return `${folder}/${name}`;
      } catch {
        // Not installed here.
      }
    }
  }
  const line = `CHROMIUM IS MISSING: ${what} was not tested in a browser.`;
  if (process.env.CI === "true") throw new Error(line);
  console.log(line);
  return null;
}

export async function launch(path) {
  return chromium.launch({ executablePath: path, args: ["--disable-dev-shm-usage"] });
}

/**
 * A browser context. It records all requests and errors: at the end, no request may have gone to another origin, and no
 * content security policy may have been violated.
 */
export class BrowserSession {
  static async open(browser, origins, options = {}) {
    const session = new BrowserSession();
    session.origins = origins;
    session.requests = [];
    session.errors = [];
    session.context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", viewport: { width: 1024, height: 800 }, ...options });
    session.context.setDefaultTimeout(20_000);
    session.context.on("request", (request) => session.requests.push(request.url()));
    session.context.on("console", (message) => session.#onConsole(message));
    session.context.on("weberror", (error) => session.errors.push(String(error.error())));
    return session;
  }

  #onConsole(message) {
    const text = message.text();
    if (/Content Security Policy|Refused to/i.test(text)) this.errors.push(text);
  }

  async open(address) {
    const page = await this.context.newPage();
    await page.goto(address);
    return page;
  }

  async end() {
    await this.context.close();
    const foreign = this.requests.filter((url) => !url.startsWith("data:") && !this.origins.includes(new URL(url).origin));
    assert.deepEqual(foreign, [], "no request leaves the origin");
    assert.deepEqual(this.errors, [], "no policy is broken and nothing is thrown");
  }
}

/** Asserts that axe finds nothing serious. The debugger injects its script, so that the page's policy stays active. */
export async function expectAccessible(page, screen) {
  const { readFile } = await import("node:fs/promises");
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: await readFile(AXE, "utf8") });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document).then((found) => JSON.stringify(found.violations))",
    awaitPromise: true,
    returnByValue: true,
  });
  const violations = JSON.parse(result.value);
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const violationsFound = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`);
  assert.deepEqual(violationsFound, [], `${screen} is accessible`);
}

/** Waits until the page shows a screen. */
export async function expectScreen(page, kind) {
  await page.locator(`#screen[data-screen="${kind}"]`).waitFor({ state: "attached" });
}

export async function position(page) {
  return Number((await page.locator("#position").textContent())?.replaceAll(",", ""));
}

/** Waits until the page shows this position. */
export async function expectPosition(page, position) {
  await page.locator("#position").filter({ hasText: new RegExp(`^${position}$`) }).waitFor();
}
