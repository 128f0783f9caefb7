// The worker in workerd, with an origin that does not know daegi.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Miniflare, Response } from "miniflare";

const SITE = "https://shop.example";
const ROOM = "https://wait.example";
const HTML = { accept: "text/html,application/xhtml+xml" };
const key = (kid) => ({ kid, ...generateKeyPairSync("ed25519") });
const [published, stranger] = [key("published"), key("stranger")];
const seen = [];
let worker;

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

function passOf(user, item = "concert", { kid, privateKey } = published, kidInHeader = kid) {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: "daegi", aud: item, sub: user, jti: "01890000-0000-8000-8000-000000000007", num: 7, iat: now - 60, exp: now + 600 };
  const text = `${part({ alg: "EdDSA", kid: kidInHeader })}.${part(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
}

before(() => {
  const jwk = { ...published.publicKey.export({ format: "jwk" }), kid: published.kid, alg: "EdDSA", use: "sig" };
  worker = new Miniflare({
    modules: true,
    script: readFileSync("build/worker.js", "utf8"),
    compatibilityDate: "2026-01-01",
    compatibilityFlags: ["nodejs_compat"],
    bindings: { DAEGI_PUBLIC_URL: ROOM, DAEGI_RULES: JSON.stringify([{ path: "/checkout/", item: "concert" }]) },
    async outboundService(request) {
      const { origin, pathname, search } = new URL(request.url);
      if (origin === ROOM) return Response.json({ keys: [jwk] });
      seen.push({ path: pathname + search, method: request.method, user: request.headers.get("daegi-user"), lane: request.headers.get("daegi-lane"), body: await request.text() });
      return new Response("from the shop");
    },
  });
});
after(() => worker.dispose());

const get = (path, headers = {}, init = {}) => worker.dispatchFetch(SITE + path, { headers, redirect: "manual", ...init });
const cookie = (pass, item = "concert") => ({ cookie: `daegi-pass-${item}=${pass}` });

test("paths that are not guarded pass, without headers that name a user", async () => {
  const response = await get("/assets/logo.svg", { "daegi-user": "evil" });
  assert.equal(await response.text(), "from the shop");
  assert.equal(seen.at(-1).user, null);
});

test("a browser waits, returns where it wanted to go, and shops", async () => {
  const refused = await get("/checkout/cart?seat=A%201", HTML);
  assert.equal(refused.status, 303);
  assert.equal(refused.headers.get("location"), `${ROOM}/wait/concert?return=${encodeURIComponent("/checkout/cart?seat=A%201")}`);

  const pass = passOf("kim");
  const moved = await get(`/checkout/cart?seat=A%201&pass=${pass}`, HTML);
  assert.deepEqual([moved.status, moved.headers.get("location")], [302, "/checkout/cart?seat=A%201"]);
  const stored = moved.headers.get("set-cookie");
  assert.match(stored, new RegExp(`^daegi-pass-concert=${pass}; .*HttpOnly; SameSite=Lax; Secure$`));

  const cart = await get("/checkout/cart?seat=A%201", { ...HTML, cookie: stored.split(";")[0], "daegi-user": "evil" });
  assert.equal(await cart.text(), "from the shop");
  assert.deepEqual([seen.at(-1).path, seen.at(-1).user, seen.at(-1).lane], ["/checkout/cart?seat=A%201", "kim", "standard"]);
  await get("/checkout/order", cookie(pass), { method: "POST", body: "two tickets" });
  assert.deepEqual([seen.at(-1).method, seen.at(-1).body], ["POST", "two tickets"]);
});

test("there is no way through without a valid pass of the item", async () => {
  const count = seen.length;
  const good = passOf("kim");
  const cases = {
    PASS_MISSING: [{}, cookie(passOf("kim", "play"), "play"), { "daegi-user": "kim" }],
    PASS_INVALID: [cookie(`${good.slice(0, -20)}${"A".repeat(20)}`), cookie(passOf("kim", "concert", stranger)), cookie(passOf("kim", "concert", stranger, "published"))],
    PASS_OTHER_ITEM: [cookie(passOf("kim", "play"))],
  };
  for (const [code, all] of Object.entries(cases)) {
    for (const headers of all) {
      for (const method of ["GET", "POST", "OPTIONS"]) {
        const response = await get("/checkout/cart", headers, { method });
        assert.equal((await response.json()).code, code);
        assert.equal((await get("/checkout/cart", { ...headers, ...HTML }, { method })).status, 303);
      }
    }
  }
  for (const path of ["//checkout/cart", "/assets/..%2fcheckout/cart", "/assets/%2e%2e%2fcheckout", "/assets%5c..%5ccheckout/cart", "/%2563heckout/cart", "/%63heckout/cart"]) {
    const { status } = await get(path);
    assert.ok(status >= 400, `${path}: ${status}`);
  }
  assert.equal(seen.length, count);
});
