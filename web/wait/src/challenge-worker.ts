// Solves challenges in a worker, so that the page stays responsive.

import { type Challenge, solveChallenge } from "../../../sdk/js/src/challenge.js";

/** Whether this script runs in the worker. */
export const isWorker = typeof document === "undefined";

/** Solves the challenge that the page sends, without a pause. */
export function serveChallenges(): void {
  addEventListener("message", async ({ data }: MessageEvent<Challenge>) => {
    postMessage(await solveChallenge(data, undefined, Number.POSITIVE_INFINITY));
  });
}

/** Returns the solution of a challenge. Solves it on the page where the browser has no workers of this kind. */
export async function solveInWorker(challenge: Challenge, signal?: AbortSignal): Promise<string> {
  try {
    return await askWorker(challenge, signal);
  } catch {
    return solveChallenge(challenge, signal);
  }
}

async function askWorker(challenge: Challenge, signal?: AbortSignal): Promise<string> {
  const worker = new Worker(import.meta.url, { type: "module" });
  try {
    return await new Promise<string>((resolve, reject) => {
      signal?.addEventListener("abort", reject);
      worker.addEventListener("error", reject);
      worker.addEventListener("message", ({ data }: MessageEvent<string>) => resolve(data));
      worker.postMessage(challenge);
    });
  } finally {
    worker.terminate();
  }
}
