/** Matrices: the values as a picture, and what was done to them. */
import type { Chunks } from "../chunks";
import { append, el, name } from "../dom";
import { table } from "../facts";
import { compared, overview, type Figure } from "../figures";
import { count, number, trim } from "../format";
import { HeatMap } from "../heatmap";
import type { Shell } from "../shell";
import type { JsonMap, Summary } from "../types";

interface MatrixTotals {
  rows: number;
  cols: number;
  type: string;
  dtype: string | null;
  complex?: boolean;
  nonzero?: number;
  nans?: number;
  infinities?: number;
  density?: number;
  min?: number | null;
  max?: number | null;
  mean?: number | null;
  std?: number | null;
  frobenius?: number | null;
}

interface Generation {
  generation: number;
  committed: boolean;
  active: boolean;
  date: string | null;
  author: string | null;
  message: string | null;
  changed_elements: number;
  changes?: JsonMap[];
}

export async function matrixPage(shell: Shell, chunks: Chunks, summary: Summary): Promise<void> {
  const totals = summary.view["matrices"] as unknown as MatrixTotals[];
  const first = totals[0];
  if (!first) return;
  const last = totals[totals.length - 1] ?? first;
  const list: Figure[] = [{ label: "shape", value: `${count(last.rows)} × ${count(last.cols)}`, note: `${last.type.toLowerCase().replace(/_/g, " ")}, ${last.dtype ?? "mixed types"}` }];
  const parts: [string, keyof MatrixTotals][] = [["smallest", "min"], ["largest", "max"], ["mean", "mean"], ["standard deviation", "std"], ["density", "density"]];
  for (const [label, key] of parts)
    if (totals.every((item) => typeof item[key] === "number")) list.push(compared(label, totals.map((item) => Number(item[key])), (value) => trim(value, 6), first.complex ? "of magnitudes" : ""));
  const strange = (last.nans ?? 0) + (last.infinities ?? 0);
  if (strange > 0) list.push({ label: "NaN or infinite", value: count(strange) });
  overview(shell, totals.length, "stats", list);
  await pictureSection(shell, chunks, summary, first);
  if (totals.length === 1) historySection(shell, summary);
}

async function pictureSection(shell: Shell, chunks: Chunks, summary: Summary, totals: MatrixTotals): Promise<void> {
  const grid = summary.view["grid"] as unknown as { width: number; height: number } | undefined;
  if (!grid || !chunks.has("grid.values") || grid.width * grid.height === 0) return;
  const both = chunks.has("grid.other");
  const section = both
    ? shell.section("picture", "Second minus first", `coffer diff ${shell.path(0)} ${shell.path(1)}`)
    : shell.section("picture", "Values", `coffer heatmap ${shell.path()} -o matrix.png`);
  let cells = await chunks.f32("grid.values");
  if (both) {
    const first = cells;
    cells = (await chunks.f32("grid.other")).map((value, index) => value - (first[index] ?? NaN));
  }
  const span = (index: number, cells: number, all: number): string => {
    const low = Math.floor((index * all) / cells);
    const high = Math.ceil(((index + 1) * all) / cells) - 1;
    return high > low ? `${count(low)}–${count(high)}` : count(low);
  };
  const map = new HeatMap("Values of the matrix", true);
  append(section.controls, map.controls);
  section.body.append(map.element);
  map.show({
    ...grid,
    cells,
    describe: (column, row) => `row ${span(row, grid.height, totals.rows)}, column ${span(column, grid.width, totals.cols)}${grid.height < totals.rows || grid.width < totals.cols ? " (mean)" : ""}`,
  });
  shell.onEscape(() => map.reset());
}

function historySection(shell: Shell, summary: Summary): void {
  const history = summary.view["history"] as unknown as Generation[] | undefined;
  if (!history || history.length === 0) return;
  const section = shell.section("history", "History", `coffer log ${shell.path()}`);
  const list = el("ol", { class: "history" });
  for (const state of [...history].reverse()) {
    const changes = (state.changes ?? []).filter((change) => typeof change["path"] === "string" && !/^(commit|element_changes|payload_checksums)(\.|$)/.test(change["path"]));
    const head = el("p", {}, el("strong", {}, `Generation ${number(state.generation)}`));
    if (state.active) append(head, el("span", { class: "chip good" }, "current"));
    if (!state.committed) append(head, el("span", { class: "chip warning" }, "not committed"));
    append(head, el("span", { class: "quiet" }, [state.date, state.author].filter((part) => part !== null).join(" · ")));
    const item = el("li", {}, head);
    if (state.message) append(item, el("p", {}, name(state.message, "text")));
    if (state.changed_elements > 0) append(item, el("p", { class: "quiet" }, `${count(state.changed_elements)} elements changed`));
    if (changes.length > 0) append(item, table(changes, "changes", {}));
    list.append(item);
  }
  section.body.append(list);
}
