/** Scans: which parameters react to which tokens. */
import uPlot from "uplot";
import { ranking } from "../bars";
import type { Chunks } from "../chunks";
import { append, choice, color, el, name } from "../dom";
import { compared, overview } from "../figures";
import { count, trim } from "../format";
import { HeatMap, type HeatData } from "../heatmap";
import { Newest, type Live } from "../live";
import type { Shell } from "../shell";
import { VirtualTable } from "../table";
import { askHeat, part, zoomInto, type Describe } from "../tiles";
import type { Summary } from "../types";

type Metric = "activation" | "grad_norm";

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
  await mapSection(shell, chunks, summary, nameOf, totals.length > 1);
  if (totals.length > 1) return;
  await blockSection(shell, chunks, nameOf);
  await sequenceSection(shell, chunks, texts);
}

// ---- Heat map and curves ----

function sameGrid(a: Grid, b: Grid | undefined): boolean {
  return b !== undefined && a.width === b.width && a.height === b.height && a.token_end === b.token_end && a.row_end === b.row_end;
}

async function mapSection(shell: Shell, chunks: Chunks, summary: Summary, nameOf: Map<number, string>, both: boolean): Promise<void> {
  const grids = summary.view["grid"] as unknown as Record<Metric, Grid>;
  const others = summary.view["grid_b"] as unknown as Record<Metric, Grid> | undefined;
  if (both && !sameGrid(grids.activation, others?.activation)) return;
  const command = (metric: Metric): string =>
    both ? `coffer diff ${shell.path(0)} ${shell.path(1)}` : `coffer heatmap ${shell.path()} --rows param --metric ${metric} -o map.png`;
  const section = shell.section("map", both ? "Second minus first, parameters × tokens" : "Parameters × tokens", command("activation"));
  const curve = el("div", { class: "plot curve", role: "img", "aria-label": "Curve of the chosen parameter over tokens" });
  const caption = el("p", { class: "readout" });
  let metric: Metric = "activation";
  let cells: Float32Array = new Float32Array(0);
  let plot: uPlot | undefined;
  let chosen = 0;
  const first = [...(await chunks.f64("sequences.first_token"))];
  const texts = await chunks.texts();
  const sources = [...(await chunks.u32("sequences.source"))].map((at) => texts[at] ?? "");
  const rowName = (row: number): string => {
    const grid = grids[metric];
    const step = (grid.row_end - grid.row_begin) / grid.height;
    const low = Math.floor(grid.row_begin + row * step);
    const high = Math.floor(grid.row_begin + (row + 1) * step) - 1;
    const one = nameOf.get(low) ?? `parameter ${low}`;
    return high > low ? `${one} … ${nameOf.get(high) ?? `parameter ${high}`}` : one;
  };
  const tokenAt = (column: number): number => {
    const grid = grids[metric];
    return grid.token_begin + Math.floor((column * (grid.token_end - grid.token_begin)) / grid.width);
  };
  const drawCurve = (row: number): void => {
    chosen = row;
    const grid = grids[metric];
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
  const showToken = (column: number): void => {
    const grid = grids[metric];
    const rows = Array.from({ length: grid.height }, (_, row) => ({ row, value: cells[row * grid.width + column] ?? NaN })).filter((item) => !Number.isNaN(item.value));
    rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const bars = rows.slice(0, 12).map(({ row, value }) => ({ label: rowName(row), value, text: trim(value, 6) }));
    const token = tokenAt(column);
    top.replaceChildren(ranking(`Largest at token ${count(token)}`, bars));
    const words = sources[sequenceIndex(first, token)];
    if (words) append(top, el("figure", { class: "chart" }, el("figcaption", {}, `Text of sequence ${sequenceOf(first, token)}`), el("p", { class: "source" }, name(words, "text"))));
  };
  const blocks = chunks.live && !both ? new BlockMap(chunks.live, shell) : undefined;
  const map = new HeatMap("Mean value of each parameter at each token", false, (column, row) => {
    drawCurve(row);
    showToken(column);
    showBlocks(row);
  });
  const showBlocks = (row: number): void => {
    const grid = grids[metric];
    const param = Math.floor(grid.row_begin + (row * (grid.row_end - grid.row_begin)) / grid.height);
    blocks?.show(param, nameOf.get(param) ?? `parameter ${param}`, metric);
  };
  const load = async (next: Metric): Promise<void> => {
    metric = next;
    const grid = grids[next];
    cells = await chunks.f32(`grid.${next}`);
    if (both) {
      const first = cells;
      cells = (await chunks.f32(`grid_b.${next}`)).map((value, index) => value - (first[index] ?? NaN));
    }
    section.setCommand(command(next));
    const data: HeatData = {
      width: grid.width,
      height: grid.height,
      cells,
      describe: (column, row) => `token ${count(tokenAt(column))}, sequence ${sequenceOf(first, tokenAt(column))}, ${rowName(row)}`,
    };
    const { live } = chunks;
    const area = { row_begin: grid.row_begin, row_end: grid.row_end, column_begin: grid.token_begin, column_end: grid.token_end };
    const describe: Describe = (tokens, rows) => `token ${part(tokens)}, sequence ${sequenceOf(first, tokens[0])}, ${rows[1] - rows[0] > 1 ? `parameters ${part(rows)}` : (nameOf.get(rows[0]) ?? `parameter ${rows[0]}`)}`;
    map.show(live && !both ? { ...data, ...zoomInto(live, { metric: next }, area, grid, describe) } : data);
    drawCurve(chosen < grid.height ? chosen : 0);
    showToken(0);
    showBlocks(chosen < grid.height ? chosen : 0);
  };
  const metrics = choice<Metric>("Value", [{ value: "activation", label: "activation" }, { value: "grad_norm", label: "gradient norm" }], "activation", (value) => void load(value));
  append(section.controls, metrics.element, map.controls);
  append(section.body, map.element, caption, curve, top);
  if (blocks) section.body.append(blocks.element);
  await load(metric);
  new ResizeObserver(() => {
    if (curve.clientWidth > 0) plot?.setSize({ width: curve.clientWidth, height: 180 });
  }).observe(curve);
  document.addEventListener("coffer-theme", () => drawCurve(chosen));
  shell.onEscape(() => map.reset());
}

/** The blocks of one parameter by tokens, down to single records, which the server reads. */
class BlockMap {
  readonly element: HTMLElement;
  private readonly caption = el("figcaption");
  private readonly map = new HeatMap("Mean value of each block at each token", false);
  private readonly newest = new Newest();

  constructor(
    private readonly live: Live,
    shell: Shell,
  ) {
    this.element = el("figure", { class: "chart blocks-map" }, this.caption, this.map.controls, this.map.element);
    shell.onEscape(() => this.map.reset());
  }

  show(param: number, label: string, metric: Metric): void {
    this.caption.replaceChildren();
    append(this.caption, "Blocks × tokens of ", name(label));
    this.newest
      .run((signal) => askHeat(this.live, { param, metric, width: 512 }, (tokens, rows) => `token ${part(tokens)}, block ${part(rows)}`, signal))
      .then((data) => data && this.map.show(data))
      .catch((problem: unknown) => append(this.caption, ` · ${String(problem)}`));
  }
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

async function blockSection(shell: Shell, chunks: Chunks, nameOf: Map<number, string>): Promise<void> {
  const keys = await chunks.u32("blocks.key");
  if (keys.length === 0) return;
  const section = shell.section("blocks", "Blocks with the largest activation", `coffer stats ${shell.path()} --by param,block`);
  const labelOf = (row: number): string => nameOf.get((keys[row] ?? 0) >>> 16) ?? `parameter ${(keys[row] ?? 0) >>> 16}`;
  const numeric = async (title: string, column: string): Promise<{ title: string; width: string; numeric: boolean; value: (row: number) => number; text: (row: number) => string }> => {
    const values = await chunks.f64(`blocks.${column}`);
    return { title, width: "8rem", numeric: true, value: (row) => values[row] ?? 0, text: (row) => trim(values[row] ?? 0, 6) };
  };
  const table = new VirtualTable({
    label: "Blocks",
    rows: keys.length,
    sortBy: 2,
    columns: [
      { title: "parameter", width: "minmax(14rem, 1fr)", text: labelOf, render: (row) => name(labelOf(row)) },
      { title: "block", width: "5rem", numeric: true, value: (row) => (keys[row] ?? 0) & 0xffff, text: (row) => String((keys[row] ?? 0) & 0xffff) },
      await numeric("mean activation", "activation_mean"),
      await numeric("largest", "activation_max"),
      await numeric("mean gradient", "grad_norm_mean"),
      await numeric("records", "records"),
    ],
    matches: (row, query) => labelOf(row).toLowerCase().includes(query),
    height: 360,
  });
  section.body.append(table.element, el("p", { class: "quiet" }, "Raw integers, as the file stores them."));
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
