/** A page: its data are in the document or come from a server, its kind is in the summary. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Chunks } from "./chunks";
import { append, el } from "./dom";
import { fileFacts, findings, value } from "./facts";
import { baseName } from "./format";
import { Live, ReadingBar, type State } from "./live";
import { matrixPage } from "./pages/matrix";
import { modelPage } from "./pages/model";
import { otherPage } from "./pages/other";
import { scanPage } from "./pages/scan";
import { setPage } from "./pages/set";
import { tracePage } from "./pages/trace";
import { Shell } from "./shell";
import type { FileSummary, Summary } from "./types";

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

function showFindings(body: HTMLElement, summary: Summary): void {
  body.replaceChildren();
  for (const file of summary.files) {
    if (summary.files.length > 1) append(body, el("h3", {}, baseName(file.name)));
    append(body, findings(file));
  }
}

function fileSections(shell: Shell, summary: Summary): HTMLElement {
  const several = summary.files.length > 1;
  const check = shell.section("findings", "Findings", `coffer check ${summary.files.map((_, index) => shell.path(index)).join(" ")}`);
  const facts = shell.section("facts", "Facts", `coffer info ${summary.files.map((_, index) => shell.path(index)).join(" ")}`);
  showFindings(check.body, summary);
  for (const file of summary.files) {
    if (several) append(facts.body, el("h3", {}, baseName(file.name)));
    append(facts.body, fileFacts(file));
  }
  shell.onSearch((query) => {
    for (const item of facts.body.querySelectorAll<HTMLElement>("dl.columns > div"))
      item.classList.toggle("dim", query !== "" && !(item.textContent ?? "").toLowerCase().includes(query));
  });
  return check.body;
}

interface Shown {
  shell: Shell;
  summary: Summary;
  findings: HTMLElement;
}

async function show(root: HTMLElement, chunks: Chunks): Promise<Shown> {
  const summary = await chunks.summary();
  const shell = new Shell(summary, chunks.live !== undefined);
  root.replaceChildren();
  shell.mount(root);
  notesSection(shell, summary);
  await PAGES[summary.page]?.(shell, chunks, summary);
  differenceSection(shell, summary);
  const body = fileSections(shell, summary);
  shell.begin();
  return { shell, summary, findings: body };
}

/** The first picture, then everything, then what the check found. */
async function showLive(root: HTMLElement): Promise<void> {
  const live = await Live.connect();
  const bar = new ReadingBar();
  root.before(bar.element);
  let shown = await show(root, await live.ask("first"));
  let stage: State["stage"] = "reading";
  let failure = "";
  const attempt = async (question: string): Promise<Chunks | undefined> => {
    try {
      return await live.ask(question);
    } catch (problem) {
      failure = `The file could not be read completely: ${problem instanceof Error ? problem.message : String(problem)}`;
      return undefined;
    }
  };
  const advance = async (state: State): Promise<void> => {
    bar.show(state);
    if (stage === "reading" && state.stage !== "reading") {
      const full = await attempt("full");
      const place = window.scrollY;
      if (full) {
        shown.shell.dispose();
        shown = await show(root, full);
        window.scrollTo(0, place);
      }
    }
    if (stage !== "done" && state.stage === "done") {
      const found = (await (await attempt("findings"))?.json("findings")) as unknown as { files: FileSummary[] } | undefined;
      shown.summary.files.forEach((file, index) => Object.assign(file, found?.files[index]));
      showFindings(shown.findings, shown.summary);
      shown.shell.showChecked();
    }
    stage = state.stage;
    if (failure !== "") bar.fail(failure);
    document.documentElement.dataset["stage"] = stage;
  };
  live.watch(advance).catch((problem: unknown) => bar.fail(problem instanceof TypeError ? "The server has ended; 'coffer view' starts it again." : String(problem)));
}

async function start(): Promise<void> {
  const root = document.getElementById("page");
  if (!root) return;
  const embedded = Chunks.embedded(document);
  if (embedded.has("summary")) await show(root, embedded);
  else await showLive(root);
  document.documentElement.dataset["ready"] = "yes";
}

start().catch((problem: unknown) => {
  const root = document.getElementById("page");
  root?.replaceChildren(el("p", { class: "error" }, `This page cannot be shown: ${problem instanceof Error ? problem.message : String(problem)}`));
  throw problem;
});
