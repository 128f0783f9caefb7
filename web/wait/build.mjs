import { bundle } from "../bundle.mjs";

await bundle(import.meta.url, { name: "wait", script: "src/main.ts", style: "wait.css" });
