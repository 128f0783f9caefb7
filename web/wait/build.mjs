// Bundles the page's script and style into dist/, which is committed: cargo needs no npm.
// With --check it changes nothing and fails if dist/ is not what the sources say.

import { build } from "esbuild";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const check = process.argv.includes("--check");

const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: { wait: "src/main.ts", style: "wait.css" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome100", "safari15.4", "firefox100"],
  charset: "utf8",
  legalComments: "none",
  write: false,
});

const { mkdir, writeFile } = await import("node:fs/promises");
await mkdir(`${here}dist`, { recursive: true });
for (const { path, text } of outputFiles) {
  const target = path.replace(/style\.css$/, "wait.css");
  const committed = await readFile(target, "utf8").catch(() => "");
  if (committed === text) continue;
  if (check) {
    console.error(`${target} is not what the sources say: run npm run build, and commit it`);
    process.exitCode = 1;
  } else {
    await writeFile(target, text);
  }
}
