// Reads reports in Chromium as a person would: node test/browser.mjs COFFER [PART OF A NAME]. Needs the package chromium; `make check-web` runs it.
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const BROWSER = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const coffer = resolve(process.argv[2] ?? "build/dev/coffer");
const tests = join(dirname(fileURLToPath(import.meta.url)), "../../tests");
const folder = mkdtempSync(join(tmpdir(), "coffer-web-"));
const HOSTILE = ["</script><script>window.harmed=1</script>", "javascript:window.harmed=1", "<svg onload=window.harmed=1>", "photo\u202egpj.exe", "}</style><style>*{display:none}", "<img src=x onerror=window.harmed=1>"];

if (!BROWSER) {
  console.log("chromium is not installed: skipped");
  process.exit(77);
}

function run(...words) {
  return execFileSync(coffer, words, { encoding: "utf8", cwd: folder, stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
}

/** Status 1 means findings or differences, which are the answer. */
function json(...words) {
  try {
    return JSON.parse(run(...words, "--json"));
  } catch (problem) {
    if (problem.status !== 1) throw problem;
    return JSON.parse(problem.stdout);
  }
}

function report(name, ...files) {
  const output = join(folder, `${name}.html`);
  try {
    run("report", ...files, "-o", output);
  } catch (problem) {
    if (problem.status !== 1) throw new Error(`${files}: ${problem.stderr}`);
  }
  return output;
}

/** Two tenths of a second of a tone, as a WAV file of 16 bits. */
function tone(hertz) {
  const head = Buffer.from("RIFF....WAVEfmt ....................data....", "latin1");
  const data = Buffer.alloc(3200);
  for (let i = 0; i < 1600; i++) data.writeInt16LE(Math.round(20000 * Math.sin((2 * Math.PI * hertz * i) / 8000)), 2 * i);
  head.writeUInt32LE(36 + data.length, 4);
  head.writeUInt32LE(16, 16);
  [1, 1].forEach((value, index) => head.writeUInt16LE(value, 20 + 2 * index));
  [8000, 16000].forEach((value, index) => head.writeUInt32LE(value, 24 + 4 * index));
  [2, 16].forEach((value, index) => head.writeUInt16LE(value, 32 + 2 * index));
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

/** Sounds with hostile captions, and numbers to filter by. */
function makeSounds() {
  const lines = [];
  for (let i = 0; i < 12; i++) {
    writeFileSync(join(folder, `tone${i}.wav`), tone(200 + 100 * i));
    lines.push(JSON.stringify({ audio: `tone${i}.wav`, caption: HOSTILE[i % HOSTILE.length], label: i % 3, score: i / 4 }));
  }
  writeFileSync(join(folder, "sounds.jsonl"), lines.join("\n"));
  run("pack", "sounds.jsonl", "sounds.mldf");
  return "sounds.mldf";
}

/** A model with hostile names and texts, and the same with rounded values. */
function makeModels() {
  const names = [...HOSTILE, "layers.0.weight", "layers.1.weight"];
  for (const [file, digits] of [["model.safetensors", 6], ["rounded.safetensors", 1]]) {
    const header = {};
    const values = new Float32Array(names.length * 256);
    values.forEach((_, index) => (values[index] = Number(Math.sin(index).toFixed(digits))));
    names.forEach((name, index) => (header[name] = { dtype: "F32", shape: [16, 16], data_offsets: [1024 * index, 1024 * (index + 1)] }));
    const text = Buffer.from(JSON.stringify(header));
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    writeFileSync(join(folder, file), Buffer.concat([size, text, Buffer.from(values.buffer)]));
  }
  mkdirSync(join(folder, "texts"));
  copyFileSync(join(folder, "model.safetensors"), join(folder, "texts/model.safetensors"));
  writeFileSync(join(folder, "texts/config.json"), JSON.stringify({ names: HOSTILE }));
  run("pack", "texts", "texts.mcf");
  return "texts.mcf";
}

/** A trace with heap snapshots, whose types have hostile names. */
function makeHeap() {
  execFileSync("python3", [join(tests, "support/heap.py"), "plain.mlyze"], { cwd: folder });
  const bytes = readFileSync(join(folder, "plain.mlyze"));
  const from = Buffer.from('"Session"');
  const place = bytes.indexOf(from);
  Buffer.from('"<b>s</b"').copy(bytes, place);
  writeFileSync(join(folder, "heap.mlyze"), bytes);
  return "heap.mlyze";
}

function makeFiles() {
  const stacks = [];
  for (let i = 0; i < 400; i++) stacks.push(`main;load_${i % 7};read_${i % 31};leaf_${i} ${1000 + i * 37}`);
  for (const name of HOSTILE) stacks.push(`main;${name} 123456`);
  writeFileSync(join(folder, "stacks <b>& 'name'.collapsed"), stacks.join("\n"));
  const trace = join(tests, "vectors/mlyze/mixed.mlyze");
  const heaptrack = join(tests, "compat/mlyze-tools/grow.heaptrack.zst");
  return {
    trace: { path: trace, page: report("trace", trace) },
    hostile: { path: "stacks <b>& 'name'.collapsed", page: report("hostile", "stacks <b>& 'name'.collapsed") },
    comparison: { path: trace, page: report("comparison", trace, heaptrack) },
    model: { path: join(tests, "compat/mcf/mantle-q4.mcf"), page: report("model", join(tests, "compat/mcf/mantle-q4.mcf")) },
    set: { path: join(tests, "compat/mldf/tutorial-writer.mldf"), page: report("set", join(tests, "compat/mldf/tutorial-writer.mldf")) },
    sounds: { path: makeSounds(), page: report("sounds", "sounds.mldf") },
    texts: { path: makeModels(), page: report("texts", "texts.mcf") },
    rounded: { path: "rounded.safetensors", page: report("rounded", "model.safetensors", "rounded.safetensors") },
    heap: { path: makeHeap(), page: report("heap", "heap.mlyze") },
    types: { path: join(tests, "vectors/mldf/all-types-208.mldf"), page: report("types", join(tests, "vectors/mldf/all-types-208.mldf")) },
    scan: { path: join(tests, "compat/mscan/scanner-io-two-appends.mscan"), page: report("scan", join(tests, "compat/mscan/scanner-io-two-appends.mscan")) },
    matrix: { path: join(tests, "compat/pycauset/float64.pycauset"), page: report("matrix", join(tests, "compat/pycauset/float64.pycauset")) },
    damaged: { path: join(tests, "vectors/mlyze/truncated-event.mlyze"), page: report("damaged", join(tests, "vectors/mlyze/truncated-event.mlyze")) },
  };
}

const files = makeFiles();
const profile = mkdtempSync(join(tmpdir(), "coffer-chromium-"));
const browser = await chromium.launchPersistentContext(profile, { executablePath: BROWSER, args: FLAGS, viewport: { width: 1280, height: 900 } });

async function open(file, hash = "") {
  const tab = await browser.newPage();
  tab.problems = [];
  tab.on("console", (message) => ["error", "warning"].includes(message.type()) && tab.problems.push(message.text()));
  tab.on("pageerror", (problem) => tab.problems.push(String(problem)));
  tab.on("request", (request) => {
    if (!/^(data:|blob:)/.test(request.url()) && request.url().split("#")[0] !== pathToFileURL(file.page).href) tab.problems.push(`request: ${request.url()}`);
  });
  await tab.goto(pathToFileURL(file.page).href + hash);
  await tab.waitForSelector("html[data-ready]", { timeout: 60000 });
  return tab;
}

async function close(tab) {
  assert.deepEqual(tab.problems, []);
  await tab.close();
}

const text = (tab, selector) => tab.locator(selector).first().innerText();
const digits = (value) => value.replace(/[\u202f\s]/g, "");
const figure = async (tab, label) => digits(await tab.locator(".figure", { has: tab.locator(`dt:text-is("${label}")`) }).locator("strong").innerText());

const CHECKS = {
  async "every page fits every width, in both themes, and axe finds nothing serious"() {
    for (const [name, file] of Object.entries(files)) {
      const tab = await open(file);
      for (const width of [400, 2560, 1280]) {
        await tab.setViewportSize({ width, height: 900 });
        const overflow = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${name} is ${overflow} pixels wider than ${width}`);
      }
      for (const scheme of ["light", "dark"]) {
        await tab.emulateMedia({ colorScheme: scheme });
        await tab.evaluate(AXE);
        /* The theme changes colors alone. */
        const rules = scheme === "dark" ? { runOnly: ["color-contrast"] } : {};
        const results = await tab.evaluate((rules) => globalThis.axe.run(document, { resultTypes: ["violations"], ...rules }), rules);
        const serious = results.violations.filter((item) => ["serious", "critical"].includes(item.impact));
        assert.deepEqual(serious.map((item) => `${name}, ${scheme}: ${item.id}: ${item.nodes[0]?.html}`), []);
      }
      await close(tab);
    }
  },

  async "the numbers of a trace are those of --json"() {
    const tab = await open(files.trace);
    const info = json("info", files.trace.path);
    const peak = json("flame", files.trace.path, "--what", "peak");
    assert.equal(await figure(tab, "events"), String(info.events));
    await tab.locator("#flame .choice button", { hasText: "total" }).click();
    const total = json("flame", files.trace.path, "--what", "total");
    await tab.waitForFunction((bytes) => document.querySelector("#flame .details strong")?.textContent === bytes, bytes(total.value));
    assert.equal(await figure(tab, "peak"), digits(bytes(peak.value)));
    await close(tab);
  },

  async "the numbers of a model, a set, a scan and a matrix are those of --json"() {
    let tab = await open(files.model);
    const info = json("info", files.model.path);
    assert.equal(await figure(tab, "tensors"), String(info.tensors?.count ?? info.tensors));
    await close(tab);
    tab = await open(files.set);
    assert.equal(await figure(tab, "samples"), String(json("stats", files.set.path).samples));
    assert.equal(await tab.locator(".gallery li").count(), json("stats", files.set.path).samples);
    await tab.locator("#samples .gallery").scrollIntoViewIfNeeded();
    await tab.waitForFunction(() => [...document.querySelectorAll(".gallery img")].every((image) => image.complete && image.naturalWidth > 0));
    await close(tab);
    tab = await open(files.scan);
    assert.equal(await figure(tab, "records"), String(json("info", files.scan.path).records));
    await close(tab);
    tab = await open(files.matrix);
    const stats = json("stats", files.matrix.path);
    assert.equal(await figure(tab, "shape"), `${stats.rows}×${stats.cols}`);
    assert.equal(Number((await figure(tab, "largest")).replace("−", "-")), Number(stats.max.toPrecision(6)));
    await close(tab);
  },

  async "findings are shown as check prints them"() {
    const tab = await open(files.damaged);
    const checked = json("check", files.damaged.path);
    assert.ok(checked.findings.length > 0);
    const shown = await tab.locator("#findings tbody tr td:last-child").allInnerTexts();
    assert.deepEqual(shown, checked.findings.map((finding) => finding.text));
    assert.match(await text(tab, ".chip.error"), /1 error/);
    await close(tab);
  },

  async "sounds play, and their captions stay text"() {
    const tab = await open(files.sounds);
    await tab.locator("#samples .wave-tile").nth(2).click();
    await tab.waitForFunction(() => {
      const player = document.querySelector("audio");
      return player.src.startsWith("blob:") && Math.abs(player.duration - 0.2) < 0.01;
    });
    await tab.locator("#samples .choice button", { hasText: "texts" }).click();
    const shown = await tab.locator("#samples .tile-text").allInnerTexts();
    assert.equal(shown[0], HOSTILE[0]);
    assert.equal(shown[3], "photo‹U+202E›gpj.exe");
    assert.equal(await tab.evaluate(() => globalThis.harmed), undefined);
    assert.equal(await tab.locator("img, svg, iframe, object, embed").count(), 0);
    await close(tab);
  },

  async "a filter finds what its command finds"() {
    const tab = await open(files.sounds);
    const form = tab.locator("#samples .filter");
    const add = async (field, operator, value) => {
      await form.locator("select").nth(0).selectOption({ label: field });
      await form.locator("select").nth(1).selectOption(operator);
      await form.locator("input").fill(value);
      await form.locator("input").press("Enter");
    };
    const words = async () => (await text(tab, "#samples .command")).match(/--where .*/)[0];
    const found = async () => Number((await text(tab, "#samples .filter + .readout")).match(/^\d+/)[0]);
    const asked = (where) => execFileSync("/bin/sh", ["-c", `"$0" head sounds.mldf --max 100 --json ${where}`, coffer], { encoding: "utf8", cwd: folder }).trim().split("\n").length;
    await add("label", "=", "1");
    assert.equal(await found(), 4);
    assert.equal(asked(await words()), 4);
    await add("score", ">=", "0.3");
    assert.equal(await found(), asked(await words()));
    await form.locator(".chip-button").first().click();
    await form.locator(".chip-button").first().click();
    for (const [operator, value] of [["contains", "<svg"], ["contains", "*{display"], ["~", "java*"], ["!=", HOSTILE[1]]]) {
      await add("caption", operator, value);
      assert.equal(await found(), asked(await words()), `${operator} ${value}`);
      assert.equal(await tab.locator("#samples .gallery li:visible").count(), await found());
      if (operator !== "!=") await form.locator(".chip-button").click();
    }
    const link = await tab.evaluate(() => location.hash);
    await close(tab);
    const again = await open(files.sounds, link);
    assert.equal(Number((await text(again, "#samples .filter + .readout")).match(/^\d+/)[0]), asked(`--where 'caption!=${HOSTILE[1]}'`));
    await close(again);
  },

  async "the token slider moves the cursor of the map, and its address is kept"() {
    const tab = await open(files.scan);
    const tokens = json("info", files.scan.path).total_tokens;
    await tab.locator(".token-slider input").focus();
    await tab.keyboard.press("End");
    assert.match(await text(tab, ".token-slider output"), new RegExp(`^${tokens - 1}, `));
    assert.match(await text(tab, "#map .heat-frame .readout"), new RegExp(`token ${tokens - 1}, `));
    await tab.locator("#map .choice button", { hasText: "blocks" }).click();
    await tab.waitForFunction(() => document.querySelector("#map .command").textContent.includes("--rows block"));
    await tab.locator("#map .heat").focus();
    await tab.keyboard.press("ArrowRight");
    await tab.keyboard.press("Enter");
    const link = await tab.evaluate(() => location.hash);
    assert.match(link, /rows=block.*token=1/);
    await close(tab);
    const again = await open(files.scan, link);
    await again.waitForFunction(() => document.querySelector(".token-slider output").textContent.startsWith("1, "));
    await close(again);
  },

  async "texts, tensors and types with hostile names stay text"() {
    let tab = await open(files.texts);
    assert.match(await text(tab, "#texts pre"), /<script>window\.harmed=1<\/script>/);
    assert.equal(await tab.evaluate(() => globalThis.harmed), undefined);
    await close(tab);
    tab = await open(files.rounded);
    const found = json("diff", "model.safetensors", "rounded.safetensors").values[0];
    assert.equal(await text(tab, "#quality .vt-body .vt-row > div"), found.name.replace("\u202e", "‹U+202E›"));
    assert.match(await text(tab, "#quality .stack-panel"), new RegExp(`${Number(found.snr_db.toPrecision(4))} dB`));
    assert.equal(await tab.locator("#quality .histogram-bar").count(), 16);
    assert.equal(await tab.evaluate(() => globalThis.harmed), undefined);
    await close(tab);
    tab = await open(files.heap);
    await tab.locator("#heap .vt-row.clickable", { hasText: "<b>s</b" }).click();
    const path = json("heap", "heap.mlyze", "--path", "<b>s</b").path;
    assert.equal(await tab.locator("#heap .stack-panel li").count(), path.length);
    assert.equal(await tab.locator("b, img, svg, iframe").count(), 0);
    await close(tab);
  },

  async "hostile names stay text"() {
    const tab = await open(files.hostile);
    await tab.keyboard.press("/");
    await tab.keyboard.type("harmed");
    await tab.waitForFunction(() => document.querySelector("#flame .body > .readout")?.textContent.includes("4 frames match"));
    const rows = await tab.locator("#stacks .vt-body .vt-row").count();
    assert.equal(rows, 4);
    assert.equal(await tab.evaluate(() => globalThis.harmed), undefined);
    assert.equal(await tab.locator("img, svg, iframe, object, embed").count(), 0);
    assert.equal(await tab.locator("a:not([href^='#'])").count(), 0);
    await tab.locator("#search").fill("gpj");
    await tab.waitForFunction(() => document.querySelector("#stacks .vt-body .vt-row")?.textContent.includes("‹U+202E›"));
    await close(tab);
  },

  async "the keyboard is enough"() {
    const tab = await open(files.hostile);
    await tab.keyboard.press("?");
    assert.ok(await tab.locator("dialog[open]").isVisible());
    await tab.keyboard.press("Escape");
    await tab.locator("dialog[open]").waitFor({ state: "detached" });
    await tab.keyboard.press("3");
    await tab.waitForFunction(() => location.hash !== "");
    await tab.locator(".flame").focus();
    await tab.keyboard.press("ArrowDown");
    await tab.waitForFunction(() => document.querySelector("#flame .frame")?.textContent.startsWith("main"));
    await tab.keyboard.press("ArrowDown");
    const below = await text(tab, "#flame .frame");
    await tab.keyboard.press("ArrowRight");
    assert.notEqual(await text(tab, "#flame .frame"), below);
    await tab.keyboard.press("Enter");
    await tab.waitForFunction(() => location.hash.includes("frame="));
    const link = await tab.evaluate(() => location.hash);
    const chosen = await text(tab, "#flame .frame");
    await tab.keyboard.press("Escape");
    await tab.waitForFunction(() => !location.hash.includes("frame="));
    await close(tab);
    const again = await open(files.hostile, link);
    await again.waitForFunction((name) => document.querySelector("#flame .frame")?.innerText === name, chosen);
    await again.locator("#stacks .vt").focus();
    await again.keyboard.press("ArrowDown");
    assert.ok((await again.locator(".stack-panel .frames li").count()) > 0);
    await close(again);
  },

  async "the theme can be chosen, and is kept"() {
    const tab = await open(files.trace);
    const background = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await background();
    await tab.keyboard.press("t");
    assert.notEqual(await background(), before);
    await tab.keyboard.press("t");
    assert.equal(await background(), before);
    await close(tab);
  },

  async "dragging in the timeline zooms, and Escape shows the whole run"() {
    const tab = await open(files.trace);
    await tab.locator("#timeline").scrollIntoViewIfNeeded();
    const box = await tab.locator("#timeline .u-over").boundingBox();
    await tab.mouse.move(box.x + box.width * 0.3, box.y + 50);
    await tab.mouse.down();
    await tab.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
    await tab.mouse.up();
    await tab.waitForFunction(() => document.querySelector("#timeline .command")?.textContent.includes("--window"));
    const words = (await text(tab, "#timeline .command")).match(/--window (\S+)/);
    run("peak", files.trace.path, "--window", words[1]);
    await tab.waitForFunction(() => document.querySelector("#flame .command")?.textContent.includes("--what total --window"));
    const asked = (await text(tab, "#flame .command")).match(/--window (\S+)/)[1];
    const total = json("flame", files.trace.path, "--what", "total", "--window", asked);
    assert.equal(await text(tab, "#flame .details strong"), bytes(total.value));
    await tab.locator("#flame .choice button", { hasText: "live at its end" }).click();
    const live = json("flame", files.trace.path, "--at", asked.split("..")[1]);
    await tab.waitForFunction((wanted) => document.querySelector("#flame .details strong")?.textContent === wanted, bytes(live.value));
    await tab.keyboard.press("Escape");
    await tab.waitForFunction(() => !document.querySelector("#timeline .command")?.textContent.includes("--window"));
    await tab.waitForFunction(() => document.querySelector("#flame .command")?.textContent.includes("--what peak"));
    await close(tab);
  },

  async "a thousand interactions leave nothing behind"() {
    const steps = {
      model: ["#tensors .vt", ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"]],
      hostile: [".flame", ["ArrowDown", "ArrowRight", "Enter", "Escape", "ArrowUp"]],
      scan: ["#map .heat", ["ArrowRight", "Enter", "ArrowDown", "Enter", "ArrowLeft", "ArrowUp"]],
      sounds: ["#samples .choice button", ["click"]],
    };
    for (const [name, [selector, keys]] of Object.entries(steps)) {
      const tab = await open(files[name]);
      const session = await tab.context().newCDPSession(tab);
      await session.send("Performance.enable");
      const measure = async () => {
        await session.send("HeapProfiler.collectGarbage");
        const { metrics } = await session.send("Performance.getMetrics");
        return Object.fromEntries(metrics.map((metric) => [metric.name, metric.value]));
      };
      const interact = (count) =>
        tab.evaluate(
          async ([selector, keys, count]) => {
            const targets = document.querySelectorAll(selector);
            for (let i = 0; i < count; i++) {
              const target = targets[i % targets.length];
              const key = keys[i % keys.length];
              if (key === "click") target.click();
              else target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
              if (i % 20 === 0) await new Promise(requestAnimationFrame);
            }
            await new Promise((done) => setTimeout(done, 100));
          },
          [selector, keys, count],
        );
      await interact(60);
      const before = await measure();
      await interact(250);
      const after = await measure();
      assert.ok(after.Nodes <= before.Nodes + 100, `${name}: ${after.Nodes - before.Nodes} more nodes`);
      assert.ok(after.JSEventListeners <= before.JSEventListeners + 25, `${name}: ${after.JSEventListeners - before.JSEventListeners} more listeners`);
      assert.ok(after.JSHeapUsedSize <= before.JSHeapUsedSize + 1e6, `${name}: ${after.JSHeapUsedSize - before.JSHeapUsedSize} more bytes`);
      await close(tab);
    }
  },

  async "print shows every section without the tools"() {
    const tab = await open(files.trace);
    await tab.emulateMedia({ media: "print" });
    assert.equal(await tab.locator(".tools").isVisible(), false);
    assert.equal(await tab.locator("#stacks").isVisible(), true);
    await close(tab);
  },

  async "a heat map says the value under the cursor"() {
    const tab = await open(files.matrix);
    await tab.locator(".heat").focus();
    await tab.keyboard.press("ArrowRight");
    await tab.keyboard.press("ArrowDown");
    const cells = run("convert", files.matrix.path, "-", "--to", "csv").trim().split("\n").map((line) => line.split(",").map(Number));
    const shown = Number((await text(tab, ".heat-frame .readout strong")).replace("−", "-").replace("e−", "e-"));
    assert.ok(Math.abs(shown - cells[1][1]) <= 1e-5 * Math.abs(cells[1][1]), `${shown} is not ${cells[1][1]}`);
    await close(tab);
  },
};

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2)} ${units[unit]}`;
}

let failed = 0;
for (const [name, check] of Object.entries(CHECKS)) {
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
