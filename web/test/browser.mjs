// Chromium, and what every page in it is watched for.

import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter } from "node:path";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Where Chromium is; null, loudly, where it is not. In CI that is a failure. */
export function chromiumPath(what = "the waiting page") {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of NAMES) {
      try {
        accessSync(`${folder}/${name}`, constants.X_OK);
        return `${folder}/${name}`;
      } catch {
        // Not here.
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
 * A person's browser. Everything its pages ask for and complain about is kept: at the end nothing
 * may have left the origins it was given, and no policy may have been broken.
 */
export class Visitor {
  static async of(browser, origins, options = {}) {
    const visitor = new Visitor();
    visitor.origins = origins;
    visitor.asked = [];
    visitor.complaints = [];
    visitor.context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce", viewport: { width: 1024, height: 800 }, ...options });
    visitor.context.setDefaultTimeout(20_000);
    visitor.context.on("request", (request) => visitor.asked.push(request.url()));
    visitor.context.on("console", (message) => visitor.#hear(message));
    visitor.context.on("weberror", (error) => visitor.complaints.push(String(error.error())));
    return visitor;
  }

  #hear(message) {
    const text = message.text();
    if (/Content Security Policy|Refused to/i.test(text)) this.complaints.push(text);
  }

  async open(address) {
    const page = await this.context.newPage();
    await page.goto(address);
    return page;
  }

  async end() {
    await this.context.close();
    const foreign = this.asked.filter((url) => !url.startsWith("data:") && !this.origins.includes(new URL(url).origin));
    assert.deepEqual(foreign, [], "no request leaves the origin");
    assert.deepEqual(this.complaints, [], "no policy is broken and nothing is thrown");
  }
}

/** That axe finds nothing serious. Its script is put in by the debugger: the page's own policy holds. */
export async function accessible(page, scene) {
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
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`);
  assert.deepEqual(told, [], `${scene} can be used by everybody`);
}

export const scene = (page) => page.locator("#scene").getAttribute("data-scene");

/** Waits until the page shows a scene. */
export async function shows(page, kind) {
  await page.locator(`#scene[data-scene="${kind}"]`).waitFor({ state: "attached" });
}

export async function position(page) {
  return Number((await page.locator("#position").textContent())?.replaceAll(",", ""));
}

/** Waits until the page shows this place. */
export async function at(page, place) {
  await page.locator("#position").filter({ hasText: new RegExp(`^${place}$`) }).waitFor();
}
