// Bundles a page's script and style into its dist/, which is committed: cargo needs no npm.
// With --check it changes nothing and fails if dist/ is not what the sources say.

import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const check = process.argv.includes("--check");

/** `name.js` from the script, `name.css` from the style, and further scripts by name. */
export async function bundle(page, { name, script, style, scripts, ...options }) {
  const here = fileURLToPath(new URL(".", page));
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: { [name]: script, style, ...scripts },
    outdir: "dist",
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022", "chrome100", "safari15.4", "firefox100"],
    charset: "utf8",
    legalComments: "none",
    write: false,
    ...options,
  });
  await mkdir(`${here}dist`, { recursive: true });
  for (const { path, text } of outputFiles) {
    const target = path.replace(/style\.css$/, `${name}.css`);
    const committed = await readFile(target, "utf8").catch(() => "");
    if (committed === text) continue;
    if (check) {
      console.error(`${target} is not what the sources say: run npm run build, and commit it`);
      process.exitCode = 1;
    } else {
      await writeFile(target, text);
    }
  }
}
