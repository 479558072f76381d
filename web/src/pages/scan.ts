/** Scans: which parameters react to which tokens. */
import uPlot from "uplot";
import { ranking } from "../bars";
import type { Chunks } from "../chunks";
import { append, choice, color, el, name } from "../dom";
import { compared, overview } from "../figures";
import { count, trim } from "../format";
import { HeatMap, type HeatData } from "../heatmap";
import type { Shell } from "../shell";
import { VirtualTable, type Column } from "../table";
import type { Summary } from "../types";

type Metric = "activation" | "grad_norm";
/** What the rows of the map are, and the chunks of each. */
type Rows = "layer" | "param" | "block";
const GROUPS: Record<Rows, string> = { layer: "layer_grid", param: "grid", block: "block_grid" };

interface Grid {
  width: number;
  height: number;
  token_begin: number;
  token_end: number;
  row_begin: number;
  row_end: number;
}

interface ScanTotals {
  records: number;
  tokens: number;
  params: number;
  sequences: number;
  model_name: string;
}

export async function scanPage(shell: Shell, chunks: Chunks, summary: Summary): Promise<void> {
  const totals = summary.view["scans"] as unknown as ScanTotals[];
  overview(shell, totals.length, "info", [
    compared("records", totals.map((item) => item.records), count),
    compared("tokens", totals.map((item) => item.tokens), count),
    compared("parameters", totals.map((item) => item.params), count, totals[0]?.model_name ?? ""),
    compared("sequences", totals.map((item) => item.sequences), count),
  ]);
  const texts = await chunks.texts();
  const ids = await chunks.u32("params.id");
  const nameOf = new Map<number, string>();
  (await chunks.u32("params.name")).forEach((at, index) => nameOf.set(ids[index] ?? 0, texts[at] ?? ""));
  const layers = [...(await chunks.u32("layers.name"))].map((at) => texts[at] ?? "");
  const nameRow: Record<Rows, (row: number) => string> = {
    layer: (row) => (/^\d+$/.test(layers[row] ?? "") ? `layer ${layers[row]}` : (layers[row] ?? `layer ${row}`)),
    param: (row) => nameOf.get(row) ?? `parameter ${row}`,
    block: (row) => `block ${row}`,
  };
  await mapSection(shell, chunks, summary, nameRow, totals.length > 1);
  if (totals.length > 1) return;
  await paramSection(shell, chunks, nameRow.param);
  await blockSection(shell, chunks, nameRow.param);
  await sequenceSection(shell, chunks, texts);
}

// ---- Heat map and curves ----

function sameGrid(a: Grid, b: Grid | undefined): boolean {
  return b !== undefined && a.width === b.width && a.height === b.height && a.token_end === b.token_end && a.row_end === b.row_end;
}

async function mapSection(shell: Shell, chunks: Chunks, summary: Summary, nameRow: Record<Rows, (row: number) => string>, both: boolean): Promise<void> {
  const gridOf = (kind: Rows): Record<Metric, Grid> | undefined => summary.view[GROUPS[kind]] as unknown as Record<Metric, Grid> | undefined;
  const otherOf = (kind: Rows): Record<Metric, Grid> | undefined => summary.view[`${GROUPS[kind]}_b`] as unknown as Record<Metric, Grid> | undefined;
  const kinds = (["layer", "param", "block"] as const).filter((kind) => {
    const own = gridOf(kind);
    return own !== undefined && (!both || sameGrid(own.activation, otherOf(kind)?.activation));
  });
  let rows = kinds[0];
  if (!rows) return;
  let metric: Metric = "activation";
  const command = (): string =>
    both ? `coffer diff ${shell.path(0)} ${shell.path(1)} --map --rows ${rows} --metric ${metric} -o map.png` : `coffer heatmap ${shell.path()} --rows ${rows} --metric ${metric} -o map.png`;
  const section = shell.section("map", both ? "Second minus first, over the tokens" : "Over the tokens", command());
  const curve = el("div", { class: "plot curve", role: "img", "aria-label": "Curve of the chosen row over tokens" });
  const caption = el("p", { class: "readout" });
  let grid = gridOf(rows)?.activation as Grid;
  let cells: Float32Array = new Float32Array(0);
  let plot: uPlot | undefined;
  let chosen = 0;
  const texts = await chunks.texts();
  const sequences: Sequences = {
    first: [...(await chunks.f64("sequences.first_token"))],
    tokens: await chunks.f64("sequences.tokens"),
    text: [...(await chunks.u32("sequences.source"))].map((at) => texts[at] ?? ""),
  };
  const rowName = (row: number): string => {
    const step = (grid.row_end - grid.row_begin) / grid.height;
    const low = Math.floor(grid.row_begin + row * step);
    const high = Math.floor(grid.row_begin + (row + 1) * step) - 1;
    const named = nameRow[rows ?? "param"];
    return high > low ? `${named(low)} … ${named(high)}` : named(low);
  };
  const tokenAt = (column: number): number => grid.token_begin + Math.floor((column * (grid.token_end - grid.token_begin)) / grid.width);
  const columnOf = (token: number): number => Math.floor(((token - grid.token_begin) * grid.width) / (grid.token_end - grid.token_begin));
  const drawCurve = (row: number): void => {
    chosen = row;
    plot?.destroy();
    curve.replaceChildren();
    const values = [...cells.subarray(row * grid.width, (row + 1) * grid.width)].map((value) => (Number.isNaN(value) ? null : value));
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: `11px ${color("--sans")}` };
    plot = new uPlot(
      {
        width: Math.max(curve.clientWidth, 200),
        height: 180,
        scales: { x: { time: false } },
        series: [{ label: "token" }, { label: metric, stroke: color("--accent"), width: 1.4, points: { show: false }, value: (_, value) => (value == null ? "—" : trim(value, 6)) }],
        axes: [{ ...axis }, { ...axis, size: 64 }],
      },
      [values.map((_, column) => tokenAt(column)), values] as uPlot.AlignedData,
      curve,
    );
    caption.replaceChildren();
    append(caption, "Curve of ", el("strong", {}, name(rowName(row))), el("span", { class: "quiet" }, " Click into the map to choose another, and a token."));
  };
  const top = el("div", { class: "token" });
  const slider = el("input", { type: "range", "aria-label": "Token" });
  const where = el("output", { class: "quiet" });
  const showToken = (column: number): void => {
    const token = tokenAt(column);
    const ranked = Array.from({ length: grid.height }, (_, row) => ({ row, value: cells[row * grid.width + column] ?? NaN })).filter((item) => !Number.isNaN(item.value));
    ranked.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const bars = ranked.slice(0, 12).map(({ row, value }) => ({ label: rowName(row), value, text: trim(value, 6) }));
    slider.value = String(column);
    where.replaceChildren();
    append(where, tokenText(sequences, token));
    slider.setAttribute("aria-valuetext", tokenText(sequences, token));
    top.replaceChildren(ranking(`Largest at token ${count(token)}`, bars));
    const words = sequences.text[sequenceIndex(sequences.first, token)];
    if (words) append(top, el("figure", { class: "chart" }, el("figcaption", {}, `Text of sequence ${sequenceOf(sequences.first, token)}`), el("p", { class: "source" }, name(words, "text"))));
  };
  const map = new HeatMap("Mean value of each row at each token", false, (column, row) => {
    drawCurve(row);
    showToken(column);
    if (ready) save({ rows: rows ?? "param", metric, token: String(tokenAt(column)) });
  });
  slider.addEventListener("input", () => {
    map.moveTo(Number(slider.value), chosen);
    showToken(Number(slider.value));
  });
  const load = async (nextRows: Rows, nextMetric: Metric, token?: number): Promise<void> => {
    rows = nextRows;
    metric = nextMetric;
    grid = gridOf(nextRows)?.[nextMetric] as Grid;
    cells = await chunks.f32(`${GROUPS[nextRows]}.${nextMetric}`);
    if (both) {
      const first = cells;
      cells = (await chunks.f32(`${GROUPS[nextRows]}_b.${nextMetric}`)).map((value, index) => value - (first[index] ?? NaN));
    }
    section.setCommand(command());
    rowChoice.set(nextRows);
    metricChoice.set(nextMetric);
    slider.max = String(grid.width - 1);
    const data: HeatData = {
      width: grid.width,
      height: grid.height,
      cells,
      describe: (column, row) => `token ${count(tokenAt(column))}, sequence ${sequenceOf(sequences.first, tokenAt(column))}, ${rowName(row)}`,
    };
    map.show(data);
    drawCurve(chosen < grid.height ? chosen : 0);
    const column = Math.min(Math.max(columnOf(token ?? grid.token_begin), 0), grid.width - 1);
    map.moveTo(column, chosen);
    showToken(column);
  };
  const LABELS: Record<Rows, string> = { layer: "layers", param: "parameters", block: "blocks" };
  const rowChoice = choice<Rows>("Rows", kinds.map((value) => ({ value, label: LABELS[value] })), rows, (value) => void load(value, metric));
  const metricChoice = choice<Metric>("Value", [{ value: "activation", label: "activation" }, { value: "grad_norm", label: "gradient norm" }], "activation", (value) => void load(rows ?? "param", value));
  let ready = false;
  const save = shell.remember("map", (state) => {
    const wanted = kinds.find((kind) => kind === state["rows"]) ?? kinds[0];
    if (wanted) void load(wanted, state["metric"] === "grad_norm" ? "grad_norm" : "activation", Number(state["token"] ?? 0));
  });
  append(section.controls, rowChoice.element, metricChoice.element, map.controls);
  append(section.body, map.element, el("label", { class: "token-slider" }, "token ", slider, where), caption, curve, top);
  await load(rows, metric);
  ready = true;
  new ResizeObserver(() => {
    if (curve.clientWidth > 0) plot?.setSize({ width: curve.clientWidth, height: 180 });
  }).observe(curve);
  document.addEventListener("coffer-theme", () => drawCurve(chosen));
  shell.onEscape(() => map.reset());
}

interface Sequences {
  first: number[];
  tokens: Float64Array;
  text: string[];
}

/** "token 12, number 3 of 40 in sequence 2" */
function tokenText(sequences: Sequences, token: number): string {
  const index = sequenceIndex(sequences.first, token);
  if (index < 0) return count(token);
  return `${count(token)}, number ${count(token - (sequences.first[index] ?? 0) + 1)} of ${count(sequences.tokens[index] ?? 0)} in sequence ${index}`;
}

function sequenceIndex(first: number[], token: number): number {
  let index = -1;
  for (let i = 0; i < first.length && (first[i] ?? Infinity) <= token; i++) index = i;
  return index;
}

function sequenceOf(first: number[], token: number): string {
  const index = sequenceIndex(first, token);
  return index < 0 ? "—" : String(index);
}

// ---- Tables ----

async function paramSection(shell: Shell, chunks: Chunks, nameParam: (id: number) => string): Promise<void> {
  const keys = await chunks.u32("param_stats.key");
  if (keys.length === 0) return;
  const section = shell.section("params", "Parameters", `coffer stats ${shell.path()} --by param`);
  const labelOf = (row: number): string => nameParam(keys[row] ?? 0);
  const table = new VirtualTable({
    label: "Parameters",
    rows: keys.length,
    sortBy: 1,
    columns: [
      { title: "parameter", width: "minmax(14rem, 1fr)", text: labelOf, render: (row) => name(labelOf(row)) },
      await numericColumn(chunks, "mean activation", "param_stats.activation_mean"),
      await numericColumn(chunks, "largest", "param_stats.activation_max"),
      await numericColumn(chunks, "mean gradient", "param_stats.grad_norm_mean"),
      { ...(await numericColumn(chunks, "score", "param_stats.score")), help: "dsc: large when a parameter is active and no longer learns" },
      await numericColumn(chunks, "records", "param_stats.records"),
    ],
    matches: (row, query) => labelOf(row).toLowerCase().includes(query),
    height: 360,
  });
  section.body.append(table.element, el("p", { class: "quiet" }, RAW));
  shell.onSearch((query) => table.filter(query));
}

const RAW = "Raw integers, as the file stores them.";

async function numericColumn(chunks: Chunks, title: string, chunk: string): Promise<Column> {
  const values = await chunks.f64(chunk);
  return { title, width: "7.4rem", numeric: true, value: (row) => values[row] ?? NaN, text: (row) => (Number.isNaN(values[row]) ? "·" : trim(values[row] ?? 0, 6)) };
}

async function blockSection(shell: Shell, chunks: Chunks, nameParam: (id: number) => string): Promise<void> {
  const keys = await chunks.u32("blocks.key");
  if (keys.length === 0) return;
  const section = shell.section("blocks", "Blocks with the largest activation", `coffer stats ${shell.path()} --by param,block`);
  const labelOf = (row: number): string => nameParam((keys[row] ?? 0) >>> 16);
  const table = new VirtualTable({
    label: "Blocks",
    rows: keys.length,
    sortBy: 2,
    columns: [
      { title: "parameter", width: "minmax(14rem, 1fr)", text: labelOf, render: (row) => name(labelOf(row)) },
      { title: "block", width: "5rem", numeric: true, value: (row) => (keys[row] ?? 0) & 0xffff, text: (row) => String((keys[row] ?? 0) & 0xffff) },
      await numericColumn(chunks, "mean activation", "blocks.activation_mean"),
      await numericColumn(chunks, "largest", "blocks.activation_max"),
      await numericColumn(chunks, "mean gradient", "blocks.grad_norm_mean"),
      await numericColumn(chunks, "records", "blocks.records"),
    ],
    matches: (row, query) => labelOf(row).toLowerCase().includes(query),
    height: 360,
  });
  section.body.append(table.element, el("p", { class: "quiet" }, RAW));
  shell.onSearch((query) => table.filter(query));
}

async function sequenceSection(shell: Shell, chunks: Chunks, texts: string[]): Promise<void> {
  const ids = await chunks.f64("sequences.id");
  if (ids.length === 0) return;
  const section = shell.section("sequences", "Sequences", `coffer ls ${shell.path()}`);
  const first = await chunks.f64("sequences.first_token");
  const tokens = await chunks.f64("sequences.tokens");
  const source = await chunks.u32("sequences.source");
  const textOf = (row: number): string => texts[source[row] ?? 0] ?? "";
  const table = new VirtualTable({
    label: "Sequences",
    rows: ids.length,
    columns: [
      { title: "id", width: "5rem", numeric: true, value: (row) => ids[row] ?? 0, text: (row) => count(ids[row] ?? 0) },
      { title: "first token", width: "7rem", numeric: true, value: (row) => first[row] ?? 0, text: (row) => count(first[row] ?? 0) },
      { title: "tokens", width: "6rem", numeric: true, value: (row) => tokens[row] ?? 0, text: (row) => count(tokens[row] ?? 0) },
      { title: "text", width: "minmax(16rem, 1fr)", text: textOf, render: (row) => name(textOf(row)) },
    ],
    matches: (row, query) => textOf(row).toLowerCase().includes(query),
    height: 320,
  });
  table.sortAscending();
  section.body.append(table.element);
  shell.onSearch((query) => table.filter(query));
}
