// Pictures of pages: node test/shot.mjs OUT_FOLDER PAGE.html… [--widths 400,1280,2560] [--dark] [--hash "#flame"]
import { chromium } from "playwright-core";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const words = process.argv.slice(2);
const option = (name, initial) => (words.includes(name) ? words.splice(words.indexOf(name), 2)[1] : initial);
const widths = option("--widths", "1280").split(",").map(Number);
const hash = option("--hash", "");
const full = !words.includes("--viewport") || (words.splice(words.indexOf("--viewport"), 1), false);
const dark = words.includes("--dark") && (words.splice(words.indexOf("--dark"), 1), true);
const [folder, ...pages] = words;

export const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const profile = mkdtempSync(join(tmpdir(), "coffer-shot-"));
const browser = await chromium.launchPersistentContext(profile, { executablePath: "/usr/bin/chromium", args: FLAGS, colorScheme: dark ? "dark" : "light" });
for (const page of pages)
  for (const width of widths) {
    const tab = await browser.newPage();
    tab.on("console", (message) => console.log(`${basename(page)}: ${message.type()}: ${message.text()}`));
    tab.on("pageerror", (problem) => console.log(`${basename(page)}: ${problem}`));
    await tab.setViewportSize({ width, height: 1000 });
    await tab.goto(pathToFileURL(resolve(page)).href + hash);
    await tab.waitForSelector("html[data-ready]", { timeout: 60000 });
    await tab.waitForTimeout(300);
    await tab.screenshot({ path: join(folder, `${basename(page, ".html")}-${width}${dark ? "-dark" : ""}.png`), fullPage: full });
    await tab.close();
  }
await browser.close();
rmSync(profile, { recursive: true, force: true });
