import { bundle } from "../bundle.mjs";

await bundle(import.meta.url, { name: "wait", script: "src/start.ts", style: "wait.css", scripts: { widget: "src/widget.ts" } });
// What few users need is loaded on demand, so that the page itself stays small.
await bundle(import.meta.url, { name: "more", script: "src/more.ts", style: "more.css" });
