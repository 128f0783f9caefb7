import { bundle } from "../bundle.mjs";

await bundle(import.meta.url, {
  name: "console",
  script: "src/main.tsx",
  style: "console.css",
  jsx: "automatic",
  jsxImportSource: "preact",
});
