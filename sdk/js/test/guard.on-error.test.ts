// A guard whose `onError` listener fails.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import { Guard, Refusal, type RefusalCode } from "../src/guard.js";
import { startStub } from "./stub-daegi.js";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const keys = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1" }] };

function pass(): string {
  const claims = { iss: "daegi", aud: "concert", sub: "kim", jti: "01890000-0000-8000-8000-000000000007", num: 7, iat: 0, exp: 600 };
  const parts = [{ alg: "EdDSA", kid: "1" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return [...parts, sign(null, Buffer.from(parts.join(".")), privateKey).toString("base64url")].join(".");
}

function refused(code: RefusalCode): (error: unknown) => boolean {
  return (error) => error instanceof Refusal && error.code === code;
}

for (const [how, onError] of Object.entries({
  throws: () => {
    throw new Error("the listener fails");
  },
  rejects: async () => {
    await Promise.reject(new Error("the listener fails later"));
  },
})) {
  test(`an onError listener that ${how} does not break the guard`, async (context) => {
    const warned = context.mock.method(console, "warn", () => {});
    const stub = await startStub(context);
    let now = 1000;
    const guard = new Guard({ publicUrl: stub.url, internalUrl: stub.url, online: true, now: () => now, onError });
    stub.keys = null;
    await assert.rejects(guard.check("concert", pass()), refused("UNAVAILABLE"), "no keys yet");
    stub.keys = keys;
    stub.verdict = null;
    now += 60_000;
    await assert.rejects(guard.check("concert", pass()), refused("UNAVAILABLE"), "keys, but the online check fails");
    stub.verdict = { valid: true };
    assert.equal((await guard.check("concert", pass())).userId, "kim");
    assert.equal(warned.mock.callCount(), 2);
  });
}
