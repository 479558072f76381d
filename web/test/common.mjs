// What the tests in a browser share: Chromium, files to look at, and the loop over checks.
import { chromium } from "playwright-core";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";

const BROWSER = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const coffer = resolve(process.argv[2] ?? "build/dev/coffer");
export const tests = join(dirname(fileURLToPath(import.meta.url)), "../../tests");
export const folder = mkdtempSync(join(tmpdir(), "coffer-web-"));
export const HOSTILE = ["</script><script>window.harmed=1</script>", "javascript:window.harmed=1", "<svg onload=window.harmed=1>", "photo\u202egpj.exe", "}</style><style>*{display:none}", "<img src=x onerror=window.harmed=1>"];

if (!BROWSER) {
  console.log("chromium is not installed: skipped");
  process.exit(77);
}

const profile = mkdtempSync(join(tmpdir(), "coffer-chromium-"));
export const browser = await chromium.launchPersistentContext(profile, { executablePath: BROWSER, args: FLAGS, viewport: { width: 1280, height: 900 } });

export const digits = (value) => value.replace(/[\u202f\s]/g, "");
export const figure = async (tab, label) => digits(await tab.locator(".figure", { has: tab.locator(`dt:text-is("${label}")`) }).locator("strong").innerText());

/** As the pages write it. */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2)} ${units[unit]}`;
}

export async function checkWidths(tab, name) {
  for (const width of [400, 2560, 1280]) {
    await tab.setViewportSize({ width, height: 900 });
    const overflow = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} pixels wider than ${width}`);
  }
}

/** rules : options of axe that select rules. */
export async function checkAxe(tab, name, rules = {}) {
  await tab.evaluate(AXE);
  const results = await tab.evaluate((some) => globalThis.axe.run(document, { resultTypes: ["violations"], ...some }), rules);
  const serious = results.violations.filter((item) => ["serious", "critical"].includes(item.impact));
  assert.deepEqual(serious.map((item) => `${name}: ${item.id}: ${item.nodes[0]?.html}`), []);
}

/** Runs the checks whose name contains the second argument of the program, and ends it. */
export async function runChecks(checks) {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    if (!name.includes(process.argv[3] ?? "")) continue;
    const begin = Date.now();
    try {
      await check();
      console.log(`ok: ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    } catch (problem) {
      failed++;
      console.log(`FAILED: ${name}\n${problem.stack ?? problem}`);
    }
  }
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
  process.exit(failed ? 1 : 0);
}
