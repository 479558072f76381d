/** A page: its data are in the document, its kind in the summary. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Chunks } from "./chunks";
import { append, el } from "./dom";
import { fileFacts, findings, value } from "./facts";
import { baseName } from "./format";
import { matrixPage } from "./pages/matrix";
import { modelPage } from "./pages/model";
import { otherPage } from "./pages/other";
import { scanPage } from "./pages/scan";
import { setPage } from "./pages/set";
import { tracePage } from "./pages/trace";
import { Shell } from "./shell";
import type { Summary } from "./types";

const PAGES: Record<string, (shell: Shell, chunks: Chunks, summary: Summary) => Promise<void>> = {
  trace: tracePage,
  model: modelPage,
  set: setPage,
  scan: scanPage,
  matrix: matrixPage,
  file: otherPage,
};

function notesSection(shell: Shell, summary: Summary): void {
  if (summary.notes.length === 0 && !summary.view_error) return;
  const list = el("ul", { class: "notes" });
  if (summary.view_error) append(list, el("li", { class: "error" }, summary.view_error));
  for (const note of summary.notes) append(list, el("li", {}, note));
  append(shell.main, el("aside", { "aria-label": "What this page leaves out" }, list));
}

function differenceSection(shell: Shell, summary: Summary): void {
  if (!summary.diff) return;
  const section = shell.section("differences", "Differences", `coffer diff ${shell.path(0)} ${shell.path(1)}`);
  if (summary.diff_error) append(section.body, el("p", { class: "error" }, summary.diff_error));
  if (summary.diff["equal"] === true) append(section.body, el("p", {}, "The files have the same content."));
  append(section.body, value(summary.diff, "", summary.diff_units ?? {}));
}

function fileSections(shell: Shell, summary: Summary): void {
  const several = summary.files.length > 1;
  const check = shell.section("findings", "Findings", `coffer check ${summary.files.map((_, index) => shell.path(index)).join(" ")}`);
  const facts = shell.section("facts", "Facts", `coffer info ${summary.files.map((_, index) => shell.path(index)).join(" ")}`);
  for (const file of summary.files) {
    if (several) for (const section of [check, facts]) append(section.body, el("h3", {}, baseName(file.name)));
    append(check.body, findings(file));
    append(facts.body, fileFacts(file));
  }
  shell.onSearch((query) => {
    for (const item of facts.body.querySelectorAll<HTMLElement>("dl.columns > div"))
      item.classList.toggle("dim", query !== "" && !(item.textContent ?? "").toLowerCase().includes(query));
  });
}

async function start(): Promise<void> {
  const root = document.getElementById("page");
  if (!root) return;
  const chunks = new Chunks(document);
  const summary = await chunks.summary();
  const shell = new Shell(summary);
  shell.mount(root);
  notesSection(shell, summary);
  await PAGES[summary.page]?.(shell, chunks, summary);
  differenceSection(shell, summary);
  fileSections(shell, summary);
  shell.begin();
  document.documentElement.dataset["ready"] = "yes";
}

start().catch((problem: unknown) => {
  const root = document.getElementById("page");
  root?.replaceChildren(el("p", { class: "error" }, `This report cannot be shown: ${String(problem)}`));
  throw problem;
});
