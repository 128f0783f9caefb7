// Entry point of the bundle, which runs twice: as the page, and as the worker that solves challenges for it. One file,
// so that a page without challenges loads nothing more.

import { isWorker, serveChallenges } from "./challenge-worker.js";

if (isWorker) serveChallenges();
else void import("./main.js");
