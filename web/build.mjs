// Bundles the script and the style of the pages: node build.mjs OUT.c writes them as arrays of C,
// node build.mjs FOLDER as page.js and page.css.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "dist");

// The license of uPlot asks for its text in every copy.
const license = await readFile(join(here, "node_modules/uplot/LICENSE"), "utf8");

const result = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.ts" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  banner: { js: `/*! Contains uPlot.\n${license.trim().replaceAll("*/", "* /")}\n*/` },
  outdir: "dist",
  write: false,
});

const outputs = new Map(result.outputFiles.map((file) => [file.path.split("/").pop(), Buffer.from(file.contents)]));
const script = outputs.get("page.js");
const style = outputs.get("page.css");
for (const [text, end] of [[script, "</script"], [style, "</style"]])
  if (text.toString().toLowerCase().includes(end)) throw new Error(`the bundle contains ${end}, which would end its element`);

function array(name, bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 32) lines.push([...bytes.subarray(i, i + 32)].join(","));
  return `const uint8_t coffer__web_${name}[] = {\n${lines.join(",\n")}\n};\nconst size_t coffer__web_${name}_size = ${bytes.length};\n`;
}

if (target.endsWith(".c")) {
  const text = `/* Generated from web/ by web/build.mjs. */\n#include "page/web_bundle.h"\n\n${array("script", script)}\n${array("style", style)}`;
  await writeFile(target, text);
} else {
  await mkdir(target, { recursive: true });
  await writeFile(join(target, "page.js"), script);
  await writeFile(join(target, "page.css"), style);
}
