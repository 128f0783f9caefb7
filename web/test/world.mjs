// A waiting room of a test's own: the real daegi binary on free ports, and the words tests are written in.

import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:net";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const ADMIN = "admin-token-of-the-browser-tests";
/** The same for all rooms: one that is killed and started again must know its tickets. */
const { privateKey } = generateKeyPairSync("ed25519");
const PASS_KEY = privateKey.export({ type: "pkcs8", format: "pem" });
const SECRET = `1:${"5eed".repeat(16)}`;

export async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Tries until it holds. Tests wait for what they want to see, never for time to pass. */
export async function eventually(what, holds, deadlineMs = 20_000) {
  const end = Date.now() + deadlineMs;
  for (;;) {
    const found = await holds().catch(() => false);
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await new Promise((again) => setTimeout(again, 50));
  }
}

function binary() {
  const path = process.env.DAEGI_BIN ?? `${process.env.CARGO_TARGET_DIR ?? `${root}target`}/debug/daegi`;
  if (!existsSync(path)) throw new Error(`${path} is missing: cargo test --workspace builds it`);
  return path;
}

export class World {
  /** A running room; `store` is memory unless given. */
  static async open(store = "memory") {
    const world = await World.#new();
    world.args.push("--store", store, "--kafka", "off", "--admin-token", ADMIN, "--ticket-secrets", SECRET);
    world.args.push("--pass-key", PASS_KEY);
    world.args.push("--tick-ms", "100", "--token-count-to-move", "1", "--lease-ms", "500", "--log", "warn");
    await world.start();
    return world;
  }

  /** The demo as a newcomer starts it, but for the ports and the token. */
  static async demo() {
    const world = await World.#new();
    world.args.push("--demo", "--admin-token", ADMIN, "--log", "error");
    await world.start();
    return world;
  }

  static async #new() {
    const world = new World();
    const [people, services] = [await freePort(), await freePort()];
    world.origin = `http://127.0.0.1:${people}`;
    world.internal = `http://127.0.0.1:${services}`;
    world.args = ["--public-addr", `127.0.0.1:${people}`, "--internal-addr", `127.0.0.1:${services}`];
    return world;
  }

  async start() {
    this.process = spawn(binary(), this.args, { stdio: ["ignore", "ignore", "inherit"], env: {} });
    this.ended = new Promise((ended) => this.process.once("exit", ended));
    await eventually("the room is ready", async () => (await fetch(`${this.internal}/readyz`)).ok, 60_000);
  }

  async end(signal = "SIGTERM") {
    this.process.kill(signal);
    await this.ended;
  }

  async admin(method, path, body) {
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const answer = await fetch(`${this.internal}/internal/admin/v1/waiting-item/${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** Creates an item whose line stands until a policy says otherwise, or sets its stock. */
  async stock(item, remainCount, itemName = "Friday 8 pm concert") {
    const { revision } = await this.admin("POST", `${item}/manually`, { itemName, remainCount, waitingQueueEnabled: true });
    if (revision === 1) await this.policy(item, { tokensPerTick: 0 });
  }

  /** Sets the quota of all lines that have none of their own; 0 stops every line. */
  async quota(tokenCountToMove) {
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const body = JSON.stringify({ tokenCountToMove });
    const answer = await fetch(`${this.internal}/internal/admin/v1/waiting-queue/token-count-to-move`, { method: "PUT", headers, body });
    if (!answer.ok) throw new Error(`quota: ${answer.status} ${await answer.text()}`);
  }

  async policy(item, changes) {
    await this.admin("PATCH", `${item}/policy`, changes);
  }

  /** Others, who join over the API. */
  async crowd(item, people) {
    for (let person = 0; person < people; person++) {
      const headers = { "user-id": `other-${Math.random().toString(36).slice(2)}` };
      const answer = await fetch(`${this.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers });
      if (!answer.ok) throw new Error(`join: ${answer.status}`);
    }
  }

  async line(item) {
    return (await fetch(`${this.origin}/api/v1/item/${item}/waiting-queue`)).json();
  }

  async verify(item, pass) {
    const answer = await fetch(`${this.internal}/internal/v1/item/${item}/entry/verify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ pass }),
    });
    return answer.json();
  }

  page(item) {
    return `${this.origin}/wait/${item}`;
  }
}

export async function redis() {
  const port = await freePort();
  const child = spawn("redis-server", ["--port", String(port), "--save", "", "--bind", "127.0.0.1"], { stdio: "ignore" });
  const missing = await Promise.race([
    new Promise((failed) => child.once("error", () => failed(true))),
    new Promise((started) => child.once("spawn", () => started(false))),
  ]);
  return missing ? null : { url: `redis://127.0.0.1:${port}`, end: () => child.kill() };
}
