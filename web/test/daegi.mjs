// Runs the real daegi binary on free ports, with helpers for tests.

import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:net";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const ADMIN = "admin-token-of-the-browser-tests";
/** Equal for all processes, so that a restarted one accepts its tickets. */
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

/** Retries until the condition holds or the deadline is over. Tests never sleep for a fixed time. */
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

export class DaegiProcess {
  /** Starts a process; `store` is memory unless given. `options` are added. */
  static async open(store = "memory", options = []) {
    const daegi = await DaegiProcess.#new();
    daegi.args.push("--store", store, "--kafka", "off", "--admin-token", ADMIN, "--ticket-secrets", SECRET);
    daegi.args.push("--pass-key", PASS_KEY);
    daegi.args.push("--tick-ms", "100", "--token-count-to-move", "1", "--lease-ms", "500", "--log", "warn", ...options);
    await daegi.start();
    return daegi;
  }

  /** Starts the demo with its defaults, except ports and token. */
  static async demo() {
    const daegi = await DaegiProcess.#new();
    daegi.args.push("--demo", "--admin-token", ADMIN, "--log", "error");
    await daegi.start();
    return daegi;
  }

  static async #new() {
    const daegi = new DaegiProcess();
    const [publicPort, internalPort] = [await freePort(), await freePort()];
    daegi.origin = `http://127.0.0.1:${publicPort}`;
    daegi.internal = `http://127.0.0.1:${internalPort}`;
    daegi.args = ["--public-addr", `127.0.0.1:${publicPort}`, "--internal-addr", `127.0.0.1:${internalPort}`];
    return daegi;
  }

  async start() {
    this.process = spawn(binary(), this.args, { stdio: ["ignore", "ignore", "inherit"], env: {} });
    this.ended = new Promise((ended) => this.process.once("exit", ended));
    await eventually("daegi is ready", async () => (await fetch(`${this.internal}/readyz`)).ok, 60_000);
  }

  async end(signal = "SIGTERM") {
    this.process.kill(signal);
    await this.ended;
  }

  async admin(method, path, body) {
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const response = await fetch(`${this.internal}/internal/admin/v1/waiting-item/${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  /** Creates an item whose line is stopped by its policy, or sets its stock. */
  async stock(item, remainCount, itemName = "Friday 8 pm concert") {
    const { revision } = await this.admin("POST", `${item}/manually`, { itemName, remainCount, waitingQueueEnabled: true });
    if (revision === 1) await this.policy(item, { tokensPerTick: 0 });
  }

  /** Sets the default quota of all lines; 0 stops every line. */
  async quota(tokenCountToMove) {
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const body = JSON.stringify({ tokenCountToMove });
    const response = await fetch(`${this.internal}/internal/admin/v1/waiting-queue/token-count-to-move`, { method: "PUT", headers, body });
    if (!response.ok) throw new Error(`quota: ${response.status} ${await response.text()}`);
  }

  async policy(item, changes) {
    await this.admin("PATCH", `${item}/policy`, changes);
  }

  /** Joins other users over the API. */
  async joinOthers(item, count) {
    for (let n = 0; n < count; n++) {
      const headers = { "user-id": `other-${Math.random().toString(36).slice(2)}` };
      const response = await fetch(`${this.origin}/api/v1/item/${item}/waiting-queue`, { method: "POST", headers });
      if (!response.ok) throw new Error(`join: ${response.status}`);
    }
  }

  async line(item) {
    return (await fetch(`${this.origin}/api/v1/item/${item}/waiting-queue`)).json();
  }

  async verify(item, pass) {
    const response = await fetch(`${this.internal}/internal/v1/item/${item}/entry/verify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ pass }),
    });
    return response.json();
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
