// Looks at views in Chromium as a person would: node test/view.mjs COFFER [PART OF A NAME]. Needs the package chromium; `make check-web` runs it.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";
import { browser, bytes, checkAxe, checkWidths, coffer, digits, figure, folder, HOSTILE, runChecks, tests } from "./common.mjs";

const json = (...words) => JSON.parse(execFileSync(coffer, [...words, "--json"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 }));

async function serve(...words) {
  const server = spawn(coffer, ["view", ...words, "--no-browser", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(server.stdout), "line");
  return { server, ...JSON.parse(line) };
}

async function open(view, url = view.url) {
  const tab = await browser.newPage();
  tab.problems = [];
  tab.on("console", (message) => ["error", "warning"].includes(message.type()) && tab.problems.push(message.text()));
  tab.on("pageerror", (problem) => tab.problems.push(String(problem)));
  tab.on("request", (request) => {
    if (!/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(`http://127.0.0.1:${view.port}/`)) tab.problems.push(`request: ${request.url()}`);
  });
  await tab.goto(url);
  await tab.waitForSelector('html[data-ready][data-stage="done"]', { timeout: 60000 });
  return tab;
}

/** Opens a view, looks at it, and ends the server with Ctrl-C. */
async function look(words, check) {
  const view = await serve(...words);
  try {
    const tab = await open(view);
    await check(tab, view);
    assert.deepEqual(tab.problems, []);
    await tab.close();
    view.server.kill("SIGINT");
    const [status] = await once(view.server, "exit");
    assert.equal(status, 0);
  } finally {
    view.server.kill("SIGKILL");
  }
}

/** Zooms in with the keyboard until a cell is one value; returns what is written about it. */
async function zoomIn(tab, frame, steps) {
  await tab.locator(`${frame} .heat`).first().focus();
  for (let i = 0; i < steps; i++) await tab.keyboard.press("+");
  await tab.waitForFunction((where) => !/mean/.test(document.querySelector(`${where} .heat-frame .readout`)?.textContent ?? "mean"), frame);
  for (const key of ["ArrowRight", "ArrowDown", "ArrowRight"]) await tab.keyboard.press(key);
  return tab.locator(`${frame} .heat-frame .readout`).first().innerText();
}

const trace = join(tests, "vectors/mlyze/mixed.mlyze");
const heaptrack = join(tests, "compat/mlyze-tools/grow.heaptrack.zst");

const matrix = makeMatrix();

function makeMatrix() {
  const path = join(folder, "matrix.npy");
  const header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1500, 1700), }".padEnd(117) + "\n";
  const values = Float64Array.from({ length: 1500 * 1700 }, (_, at) => at / 3);
  writeFileSync(path, Buffer.concat([Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, header.length & 255, header.length >> 8]), Buffer.from(header), Buffer.from(values.buffer)]));
  execFileSync(coffer, ["convert", path, join(folder, "matrix.pycauset")], { stdio: "ignore" });
  return { npy: path, pycauset: join(folder, "matrix.pycauset") };
}

const CHECKS = {
  async "a trace: numbers, a finer timeline, and the flame graph of a window"() {
    await look([trace], async (tab) => {
      assert.equal(await figure(tab, "events"), String(json("info", trace).events));
      assert.match(await tab.locator("header .chip").innerText(), /no findings/);
      assert.ok(await tab.locator("#findings").innerText());
      await tab.evaluate(() => (location.hash = "timeline?from=100&to=2000"));
      const wanted = json("flame", trace, "--what", "total", "--window", "100us..2000us").value;
      await tab.waitForFunction((bytes) => document.querySelector("#flame .details strong")?.textContent?.replace(/\s/g, " ").startsWith(bytes), bytes(wanted));
      await tab.waitForFunction(() => /--window 100us\.\.2000us/.test(document.querySelector("#stacks .command")?.textContent ?? ""));
      await tab.keyboard.press("Escape");
      await tab.waitForFunction(() => document.querySelector("#timeline .readout")?.textContent?.startsWith("Whole run"));
      await tab.waitForFunction(() => !/--window/.test(document.querySelector("#stacks .command")?.textContent ?? "--window"));
    });
  },

  async "a profile of another program, and a comparison"() {
    await look([heaptrack], async (tab) => assert.ok(await figure(tab, "peak")));
    await look([trace, heaptrack], async (tab) => assert.ok(await tab.locator("#differences").innerText()));
  },

  async "a model: any tensor, its picture and its values"() {
    const path = join(tests, "compat/mcf/mantle-q4.mcf");
    const stats = execFileSync(coffer, ["stats", path, "--json"], { encoding: "utf8" }).trim().split("\n").map((line) => JSON.parse(line));
    await look([path], async (tab) => {
      for (const tensor of stats.slice(0, 3)) {
        await tab.locator("#tensors .vt-row", { hasText: tensor.name }).first().click();
        await tab.waitForFunction((name) => document.querySelector("#tensors .stack-panel")?.dataset.read === name, tensor.name);
        assert.equal(digits(await tab.locator("#tensors dt:text-is('zeros') + dd").innerText()), String(tensor.zeros));
      }
      assert.ok(await tab.locator("#tensors .tensor-map canvas").isVisible());
    });
  },

  async "a matrix: zoom down to the exact values"() {
    await look([matrix.pycauset], async (tab) => {
      assert.equal(await figure(tab, "shape"), "1500×1700");
      const text = await zoomIn(tab, "#picture", 16);
      const [, shown, row, column] = /^(\S+) · row (\S+), column (\S+)$/.exec(text.replace(/\u202f/g, "")) ?? assert.fail(text);
      assert.ok(Number(column) > 0 && Number(shown) === (Number(row) * 1700 + Number(column)) / 3, text);
      await tab.keyboard.press("Escape");
    });
  },

  async "a scan: the blocks of a parameter, and a finer part"() {
    const path = join(tests, "compat/mscan/scanner-io-two-appends.mscan");
    await look([path], async (tab) => {
      assert.equal(await figure(tab, "records"), String(json("info", path).records));
      await tab.locator("#map .choice button", { hasText: "parameters" }).click();
      await tab.waitForSelector(".blocks-map .readout strong");
      assert.match(await tab.locator(".blocks-map figcaption").innerText(), /Blocks × tokens of layers\.0\.weight/);
      assert.match(await tab.locator(".blocks-map .readout").innerText(), /token 0, block 0/);
    });
  },

  async "a set: filter by value, and one sample as it is"() {
    const path = join(tests, "compat/mldf/tutorial-writer.mldf");
    await look([path], async (tab) => {
      assert.equal(await figure(tab, "samples"), String(json("stats", path).samples));
      await tab.waitForFunction(() => [...document.querySelectorAll(".gallery img")].length === 9);
      await tab.locator(".filter select").nth(1).selectOption(">=");
      await tab.locator(".filter input").fill("32");
      await tab.locator(".filter button", { hasText: "filter" }).click();
      await tab.waitForFunction(() => /^4 of 9 samples/.test(document.querySelector("#samples .readout")?.textContent ?? ""));
      await tab.locator("#samples .vt-row", { hasText: "sample 8" }).first().click();
      await tab.waitForFunction(() => { const image = document.querySelector(".whole-sample img"); return image?.complete && image.naturalWidth === 6; });
      assert.match(await tab.locator(".whole-sample").innerText(), /sample 8 – ünï/);
    });
  },

  async "files of other kinds"() {
    await look([matrix.npy], async (tab) => assert.ok(await tab.locator("h1").innerText()));
  },

  async "hostile names are text"() {
    const path = join(folder, "stacks <b>& 'name'.collapsed");
    writeFileSync(path, HOSTILE.map((name, at) => `main;${name} ${1000 + at}`).join("\n"));
    await look([path], async (tab) => {
      assert.equal(await tab.evaluate(() => globalThis.harmed), undefined);
      assert.ok((await tab.locator("h1").innerText()).includes("<b>"));
      assert.equal(await tab.locator("svg[onload], img[onerror]").count(), 0);
    });
  },

  async "two pages of one view; without the token there is none; a page that is loaded again stays"() {
    const view = await serve(trace);
    try {
      const one = await open(view);
      const two = await open(view);
      assert.ok(!one.url().includes("token"), "the token is not in the address of the page");
      await one.reload();
      await one.waitForSelector('html[data-stage="done"]');
      const stranger = await browser.newPage();
      await stranger.goto(`http://127.0.0.1:${view.port}/`);
      assert.match(await stranger.locator("#page .error").innerText(), /no token/);
      await stranger.close();
      assert.deepEqual([...one.problems, ...two.problems], []);
      view.server.kill("SIGINT");
      await once(view.server, "exit");
      await one.waitForFunction(() => /server has ended/.test(document.querySelector(".reading")?.textContent ?? ""));
      await one.close();
      await two.close();
    } finally {
      view.server.kill("SIGKILL");
    }
  },

  async "a view ends when its last page is closed"() {
    const view = await serve(trace, "--idle", "1");
    const tab = await open(view);
    await tab.close();
    const [status] = await once(view.server, "exit");
    assert.equal(status, 0);
  },

  async "a view fits narrow and wide windows, and axe finds nothing serious"() {
    for (const path of [trace, join(tests, "compat/mldf/tutorial-writer.mldf"), join(tests, "compat/mcf/mantle-q4.mcf")])
      await look([path], async (tab) => {
        await checkWidths(tab, path);
        await checkAxe(tab, path);
      });
  },
};

await runChecks(CHECKS);
