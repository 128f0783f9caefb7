import assert from "node:assert/strict";
import { test } from "node:test";
import { clientName } from "../src/client-name.js";

test("the page names itself and the time until it could be used", () => {
  assert.equal(clientName({ domInteractive: 834.4 }), "page;load=834");
  assert.equal(clientName({ domInteractive: 5_834, activationStart: 5_000 }), "page;load=834");
  assert.equal(clientName({ domInteractive: 0 }), "page", "the browser hides it");
  assert.equal(clientName({ domInteractive: 800, activationStart: 5_000 }), "page", "loaded before it was shown");
  assert.equal(clientName(undefined), "page");
});
