/** Parts of a model's page: its texts, and the error by tensor when two models are compared. */
import { histogram } from "../bars";
import type { Chunks } from "../chunks";
import { append, el, name } from "../dom";
import { bytes, count, percent, shell as quote, trim } from "../format";
import type { Shell } from "../shell";
import { VirtualTable, type Column } from "../table";

async function words(chunks: Chunks, column: string): Promise<string[]> {
  const texts = await chunks.texts();
  return [...(await chunks.u32(column))].map((at) => texts[at] ?? "");
}

// ---- Texts ----

/** Text of a file, as lines that scroll. */
function inert(text: string): HTMLElement {
  return el("pre", { class: "document", tabindex: 0 }, text);
}

export async function textSection(shell: Shell, chunks: Chunks): Promise<void> {
  if (!chunks.has("documents.name")) return;
  const names = await words(chunks, "documents.name");
  const texts = await words(chunks, "documents.text");
  const sizes = await chunks.f64("documents.size");
  if (names.length === 0) return;
  const section = shell.section("texts", "Configuration and tokenizer", `coffer get ${shell.path()} ${quote(names[0] ?? "")}`);
  const items = names.map((title, index) => {
    const details = el("details", {}, el("summary", {}, name(title), el("span", { class: "quiet" }, ` ${bytes(sizes[index] ?? 0)}`)));
    details.addEventListener("toggle", () => {
      if (details.childElementCount === 1) details.append(inert(texts[index] ?? ""));
      if (details.open) section.setCommand(`coffer get ${shell.path()} ${quote(title)}`);
    });
    details.open = index === 0;
    return details;
  });
  append(section.body, ...items);
  shell.onSearch((query) => items.forEach((item, index) => item.classList.toggle("dim", query !== "" && !`${names[index]} ${texts[index]}`.toLowerCase().includes(query))));
}

// ---- Comparison ----

export function decibels(relative: number): string {
  return relative === 0 ? "exact" : `${trim(-20 * Math.log10(relative), 4)} dB`;
}

interface Quality {
  name: string[];
  before: string[];
  after: string[];
  elements: Float64Array;
  relative: Float64Array;
  max_abs: Float64Array;
  /** Where the groups of rows of each tensor begin. */
  first: Float64Array;
  rows: Float32Array;
}

async function load(chunks: Chunks): Promise<Quality> {
  const groups = await chunks.u32("quality.groups");
  const first = new Float64Array(groups.length + 1);
  groups.forEach((size, index) => (first[index + 1] = (first[index] ?? 0) + size));
  return {
    name: await words(chunks, "quality.name"),
    before: await words(chunks, "quality.before"),
    after: await words(chunks, "quality.after"),
    elements: await chunks.f64("quality.elements"),
    relative: await chunks.f64("quality.relative"),
    max_abs: await chunks.f64("quality.max_abs"),
    first,
    rows: await chunks.f32("quality.rows"),
  };
}

export async function qualitySection(shell: Shell, chunks: Chunks): Promise<void> {
  if (chunks.count("quality.name") === 0) return;
  const quality = await load(chunks);
  const command = `coffer diff ${shell.path(0)} ${shell.path(1)}`;
  const section = shell.section("quality", "Error by tensor", command);
  const type = (row: number): string => (quality.before[row] === quality.after[row] ? (quality.after[row] ?? "") : `${quality.before[row]} → ${quality.after[row]}`);
  const columns: Column[] = [
    { title: "name", width: "minmax(12rem, 1fr)", text: (row) => quality.name[row] ?? "", render: (row) => name(quality.name[row] ?? "") },
    { title: "type", width: "6.5rem", text: type },
    { title: "signal to noise", width: "7rem", numeric: true, help: "Of the second model relative to the first", value: (row) => -(quality.relative[row] ?? 0), text: (row) => decibels(quality.relative[row] ?? 0) },
    { title: "error", width: "5.4rem", numeric: true, help: "Root of the squared differences over the squares", value: (row) => quality.relative[row] ?? 0, text: (row) => ((quality.relative[row] ?? 0) === 0 ? "0" : percent(quality.relative[row] ?? 0, 1)) },
    { title: "largest", width: "5.4rem", numeric: true, help: "The largest difference of an element", value: (row) => quality.max_abs[row] ?? 0, text: (row) => trim(quality.max_abs[row] ?? 0, 4) },
  ];
  const panel = el("div", { class: "stack-panel free" });
  const table = new VirtualTable({
    label: "Error by tensor",
    columns,
    rows: quality.name.length,
    sortBy: 3,
    matches: (row, query) => `${quality.name[row]} ${type(row)}`.toLowerCase().includes(query),
    select: (row) => panel.replaceChildren(...describe(quality, row)),
    height: 600,
  });
  append(section.body, el("div", { class: "beside" }, table.element, panel));
  table.selectFirst();
  shell.onSearch((query) => table.filter(query));
}

function describe(quality: Quality, row: number): Node[] {
  const nodes: Node[] = [el("h3", {}, name(quality.name[row] ?? "")), el("p", {}, `${count(quality.elements[row] ?? 0)} elements, ${decibels(quality.relative[row] ?? 0)}`)];
  const rows = row + 1 < quality.first.length ? quality.rows.subarray(quality.first[row], quality.first[row + 1]) : new Float32Array(0);
  if (rows.length > 1) {
    const bars = [...rows].map((value, index) => ({ label: String(index + 1), value: Number.isFinite(value) ? value : 0, text: percent(value, 1) || "0", title: `rows, part ${index + 1} of ${rows.length}: ${percent(value, 1) || "0"}` }));
    nodes.push(histogram("Error by rows, from the first to the last", bars, 4));
  }
  return nodes;
}
