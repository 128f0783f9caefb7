// Shops in Express and Fastify behind a real daegi, over HTTP.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import express from "express";
import Fastify from "fastify";
import { eventually, DaegiProcess } from "../../../../web/test/daegi.mjs";
import { entryOf, Guard } from "../../build/src/guard.js";

let daegi;
const shops = {};

/** The same shop in both: a checkout, orders that complete the entry, and a page with an online check. */
function inExpress(guard, online) {
  const app = express();
  const hello = (request, response) => response.send(`hello ${entryOf(request).userId}`);
  app.get("/checkout", guard.express({ item: "concert" }), hello);
  app.get("/items/:item", guard.express({ item: (request) => request.params.item }), hello);
  app.get("/strict", online.express({ item: "concert" }), hello);
  app.post("/orders/:status", guard.express({ item: "concert", completeOnSuccess: true }), (request, response) => {
    response.status(Number(request.params.status)).json({ by: entryOf(request).userId });
  });
  return new Promise((listening) => {
    const server = app.listen(0, "127.0.0.1", () => {
      listening({ url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() });
    });
  });
}

async function inFastify(guard, online) {
  const app = Fastify();
  const hello = async (request) => `hello ${entryOf(request).userId}`;
  app.get("/checkout", { onRequest: guard.fastify({ item: "concert" }) }, hello);
  app.get("/items/:item", { onRequest: guard.fastify({ item: (request) => request.params.item }) }, hello);
  app.get("/strict", { onRequest: online.fastify({ item: "concert" }) }, hello);
  const orders = { onRequest: guard.fastify({ item: "concert", completeOnSuccess: true }) };
  app.post("/orders/:status", orders, async (request, reply) => {
    return reply.code(Number(request.params.status)).send({ by: entryOf(request).userId });
  });
  return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
}

before(async () => {
  daegi = await DaegiProcess.open();
  const options = { publicUrl: daegi.origin, internalUrl: daegi.internal };
  const [guard, online] = [new Guard(options), new Guard({ ...options, online: true })];
  shops.Express = await inExpress(guard, online);
  shops.Fastify = await inFastify(guard, online);
  await daegi.stock("concert", 100);
  await daegi.policy("concert", { tokensPerTick: 10 });
});

after(async () => {
  await Promise.all(Object.values(shops).map((shop) => shop.close()));
  await daegi?.end();
});

/** A user who waited until they were admitted. */
async function admitted(user) {
  const line = `${daegi.origin}/api/v1/item/concert/waiting-queue`;
  const { token } = await (await fetch(line, { method: "POST", headers: { "user-id": user } })).json();
  const ticket = async () => (await fetch(`${line}/${token}`)).json();
  await eventually("the ticket is ENTERABLE", async () => (await ticket()).status === "ENTERABLE");
  return { ticket, token, pass: (await ticket()).pass };
}

for (const name of ["Express", "Fastify"]) {
  const ask = (path, headers = {}, method = "GET") =>
    fetch(shops[name].url + path, { method, headers, redirect: "manual" });

  test(`${name}: browsers without a pass are redirected to the waiting page, other clients get a problem`, async () => {
    const browser = await ask("/checkout", { accept: "text/html" });
    assert.equal(browser.status, 303);
    assert.equal(browser.headers.get("location"), `${daegi.origin}/wait/concert`);
    assert.equal((await fetch(browser.headers.get("location"))).status, 200, "the page is there");
    const program = await ask("/checkout", { accept: "application/json" });
    assert.equal(program.status, 401);
    assert.equal(program.headers.get("content-type"), "application/problem+json");
    const { code, waitingPage } = await program.json();
    assert.deepEqual([code, waitingPage], ["PASS_MISSING", `${daegi.origin}/wait/concert`]);
  });

  test(`${name}: an admitted user passes, and the browser stores the pass`, async () => {
    const { pass } = await admitted(`kim-${name}`);
    const first = await ask(`/checkout?pass=${pass}`);
    assert.equal(await first.text(), `hello kim-${name}`);
    const [cookie] = first.headers.getSetCookie();
    assert.match(cookie, /^daegi-pass-concert=\S+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
    const second = await ask("/checkout", { cookie: cookie.split(";")[0] });
    assert.equal(await second.text(), `hello kim-${name}`);
    assert.deepEqual(second.headers.getSetCookie(), []);
  });

  test(`${name}: the item may be part of the request`, async () => {
    const { pass } = await admitted(`cho-${name}`);
    const statusOf = async (item) => (await ask(`/items/${item}`, { "daegi-pass": pass })).status;
    assert.deepEqual([await statusOf("concert"), await statusOf("drop"), await statusOf("a$b")], [200, 403, 404]);
  });

  test(`${name}: a successful order completes the entry, and the pass is revoked`, async () => {
    const { pass, ticket } = await admitted(`lee-${name}`);
    const headers = { authorization: `Bearer ${pass}` };
    assert.equal((await ask("/strict", headers)).status, 200);
    assert.equal((await ask("/orders/402", headers, "POST")).status, 402);
    assert.equal((await ask("/strict", headers)).status, 200, "a failed order ends nothing");
    assert.equal((await ask("/orders/201", headers, "POST")).status, 201);
    await eventually("completed", async () => (await ticket()).status === "COMPLETED");
    const refused = await ask("/strict", headers);
    assert.deepEqual([refused.status, (await refused.json()).code], [403, "PASS_REVOKED"]);
    assert.equal((await ask("/checkout", headers)).status, 200, "offline, a pass is good until it expires");
  });
}
