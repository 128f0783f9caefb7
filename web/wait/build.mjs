import { bundle } from "../bundle.mjs";

await bundle(import.meta.url, { name: "wait", script: "src/start.ts", style: "wait.css", scripts: { widget: "src/widget.ts" } });
