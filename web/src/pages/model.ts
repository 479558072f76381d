/** Models: which tensors there are, how large they are, and what their values look like. */
import { histogram } from "../bars";
import type { Chunks } from "../chunks";
import { append, el, name } from "../dom";
import { compared, overview } from "../figures";
import { bytes, count, number, percent, shell as quote, trim } from "../format";
import { HeatMap } from "../heatmap";
import type { Shell } from "../shell";
import { VirtualTable, type Column } from "../table";
import { treemap } from "../treemap";
import type { Summary } from "../types";
import { qualitySection, textSection } from "./model_parts";

const BINS = 64;

interface ModelTotals {
  tensors: number;
  elements: number;
  bytes: number;
}

interface Tensors {
  name: string[];
  dtype: string[];
  shape: string[];
  file: string[];
  elements: Float64Array;
  size: Float64Array;
  /** The stored quality of quantized tensors; NaN without. */
  snr: Float64Array | undefined;
}

interface Values {
  /** From a tensor to its row, or undefined. */
  row: Map<number, number>;
  columns: Record<"min" | "max" | "mean" | "std" | "zeros" | "not_finite" | "outliers", Float64Array>;
  histogram: Float32Array;
}

async function loadTensors(chunks: Chunks): Promise<Tensors> {
  const texts = await chunks.texts();
  const words = async (column: string): Promise<string[]> => [...(await chunks.u32(`tensors.${column}`))].map((at) => texts[at] ?? "");
  return {
    name: await words("name"),
    dtype: await words("dtype"),
    shape: await words("shape"),
    file: await words("file"),
    elements: await chunks.f64("tensors.elements"),
    size: await chunks.f64("tensors.size"),
    snr: chunks.has("tensors.snr_db") ? await chunks.f64("tensors.snr_db") : undefined,
  };
}

interface TensorMap {
  width: number;
  height: number;
  cells: Float32Array;
}

/** Pictures by tensor. */
async function loadMaps(chunks: Chunks): Promise<Map<number, TensorMap>> {
  const maps = new Map<number, TensorMap>();
  if (!chunks.has("maps.tensor")) return maps;
  const tensor = await chunks.u32("maps.tensor");
  const width = await chunks.u32("maps.width");
  const height = await chunks.u32("maps.height");
  const cells = await chunks.f32("maps.cells");
  let place = 0;
  tensor.forEach((at, index) => {
    const size = (width[index] ?? 0) * (height[index] ?? 0);
    maps.set(at, { width: width[index] ?? 0, height: height[index] ?? 0, cells: cells.subarray(place, place + size) });
    place += size;
  });
  return maps;
}

async function loadValues(chunks: Chunks): Promise<Values | undefined> {
  if (!chunks.has("values.tensor")) return undefined;
  const tensor = await chunks.u32("values.tensor");
  const column = (part: string): Promise<Float64Array> => chunks.f64(`values.${part}`);
  return {
    row: new Map([...tensor].map((at, row) => [at, row])),
    columns: {
      min: await column("min"),
      max: await column("max"),
      mean: await column("mean"),
      std: await column("std"),
      zeros: await column("zeros"),
      not_finite: await column("not_finite"),
      outliers: await column("outliers"),
    },
    histogram: await chunks.f32("values.histogram"),
  };
}

export async function modelPage(shell: Shell, chunks: Chunks, summary: Summary): Promise<void> {
  const totals = summary.view["models"] as unknown as ModelTotals[];
  const list = [
    compared("tensors", totals.map((item) => item.tensors), count),
    compared("parameters", totals.map((item) => item.elements), short),
    compared("payload", totals.map((item) => item.bytes), bytes),
  ];
  if (totals.length > 1) {
    overview(shell, totals.length, "info", list);
    await qualitySection(shell, chunks);
    return;
  }
  const tensors = await loadTensors(chunks);
  const values = await loadValues(chunks);
  const bits = totals[0] && totals[0].elements > 0 ? (8 * totals[0].bytes) / totals[0].elements : 0;
  list.push({ label: "bits per parameter", value: trim(bits, 3), note: [...new Set(tensors.dtype)].slice(0, 6).join(", ") });
  overview(shell, 1, "info", list);
  mapSection(shell, tensors);
  tensorSection(shell, tensors, values, await loadMaps(chunks), totals[0]?.bytes ?? 0);
  await textSection(shell, chunks);
}

function short(value: number): string {
  if (value >= 1e9) return `${trim(value / 1e9, 4)} G`;
  if (value >= 1e6) return `${trim(value / 1e6, 4)} M`;
  return count(value);
}

/** Names without the parts, between dots, that all of them begin or end with. */
function withoutCommonEnds(names: string[]): string[] {
  const split = names.map((item) => item.split("."));
  const first = split[0] ?? [];
  const shortest = Math.min(...split.map((parts) => parts.length));
  let head = 0;
  while (head < shortest - 1 && split.every((parts) => parts[head] === first[head])) head++;
  let tail = 0;
  while (tail < shortest - head - 1 && split.every((parts) => parts[parts.length - 1 - tail] === first[first.length - 1 - tail])) tail++;
  return split.map((parts) => parts.slice(head, parts.length - tail).join("."));
}

function mapSection(shell: Shell, tensors: Tensors): void {
  const section = shell.section("map", "Where the bytes are", `coffer ls ${shell.path()} -o map.png`);
  const trimmed = withoutCommonEnds(tensors.name);
  const items = tensors.name.map((label, row) => ({
    label,
    short: trimmed[row] ?? label,
    value: tensors.size[row] ?? 0,
    group: tensors.dtype[row] ?? "",
    text: `${tensors.shape[row]} · ${tensors.dtype[row]} · ${bytes(tensors.size[row] ?? 0)}`,
  }));
  const map = treemap("Tensors by bytes and type; the table below has the same numbers", items, () => (location.hash = "tensors"));
  section.body.append(map.element);
  shell.onSearch((query) => map.search(query));
}

function tensorSection(shell: Shell, tensors: Tensors, values: Values | undefined, maps: Map<number, TensorMap>, total: number): void {
  const section = shell.section("tensors", "Tensors", `coffer stats ${shell.path()}`);
  const of = (column: keyof Values["columns"], row: number): number => {
    const at = values?.row.get(row);
    return at === undefined ? NaN : (values?.columns[column][at] ?? NaN);
  };
  const shown = (value: number): string => (Number.isNaN(value) ? "·" : trim(value, 3));
  const columns: Column[] = [
    { title: "name", width: "minmax(9rem, 1fr)", text: (row) => tensors.name[row] ?? "", render: (row) => name(tensors.name[row] ?? "") },
    { title: "type", width: "2.9rem", text: (row) => tensors.dtype[row] ?? "" },
    { title: "shape", width: "minmax(4.6rem, 7rem)", text: (row) => tensors.shape[row] ?? "" },
    { title: "size", width: "4.2rem", numeric: true, value: (row) => tensors.size[row] ?? 0, text: (row) => bytes(tensors.size[row] ?? 0) },
  ];
  const { snr } = tensors;
  if (snr) columns.push({ title: "dB", width: "2.8rem", numeric: true, help: "Signal-to-noise ratio when the tensor was quantized", value: (row) => snr[row] ?? NaN, text: (row) => (Number.isFinite(snr[row]) ? trim(snr[row] ?? 0, 3) : "·") });
  if (values)
    for (const column of ["min", "max", "std"] as const)
      columns.push({ title: column, width: "4.3rem", numeric: true, value: (row) => of(column, row), text: (row) => shown(of(column, row)) });
  const panel = el("div", { class: "stack-panel free" }, el("p", { class: "quiet" }, "Choose a tensor to see its values."));
  const heat = new HeatMap("Values of the tensor", false);
  const picture = el("figure", { class: "chart tensor-map" }, el("figcaption", {}, "Means of the values: first dimension down"), heat.element);
  let ready = false;
  const save = shell.remember("tensors", (state) => {
    const row = tensors.name.indexOf(state["tensor"] ?? "");
    if (row >= 0) select(row);
  });
  const select = (row: number): void => {
    const map = maps.get(row);
    panel.replaceChildren(...tensorDetails(tensors, values, row, total), ...(map ? [picture] : []));
    if (map) heat.show({ ...map, describe: (column, line) => `cell ${line + 1} of ${map.height} down, ${column + 1} of ${map.width} across` });
    section.setCommand(`coffer get ${shell.path()} ${quote(tensors.name[row] ?? "")} -o tensor.npy`);
    if (ready) save({ tensor: tensors.name[row] ?? "" });
  };
  const table = new VirtualTable({
    label: "Tensors",
    columns,
    rows: tensors.name.length,
    sortBy: 3,
    matches: (row, query) => `${tensors.name[row]} ${tensors.dtype[row]}`.toLowerCase().includes(query),
    select,
    height: 800,
  });
  append(section.body, el("div", { class: "beside" }, table.element, panel));
  table.selectFirst();
  ready = true;
  shell.onSearch((query) => table.filter(query));
}

function tensorDetails(tensors: Tensors, values: Values | undefined, row: number, total: number): Node[] {
  const list = el("dl", { class: "facts" });
  const fact = (label: string, text: string): void => append(list, el("dt", {}, label), el("dd", {}, text));
  fact("type", tensors.dtype[row] ?? "");
  fact("shape", tensors.shape[row] ?? "");
  fact("elements", count(tensors.elements[row] ?? 0));
  fact("size", `${bytes(tensors.size[row] ?? 0)}, ${percent(tensors.size[row] ?? 0, total)} of the payload`);
  if (tensors.file[row]) fact("file", tensors.file[row] ?? "");
  if (tensors.snr && !Number.isNaN(tensors.snr[row])) fact("quantized with", Number.isFinite(tensors.snr[row]) ? `${trim(tensors.snr[row] ?? 0, 4)} dB signal to noise` : "no error");
  const at = values?.row.get(row);
  const nodes: Node[] = [el("h3", {}, name(tensors.name[row] ?? "")), list];
  if (!values || at === undefined) return nodes;
  const pick = (column: keyof Values["columns"]): number => values.columns[column][at] ?? NaN;
  fact("range", `${number(pick("min"))} to ${number(pick("max"))}`);
  fact("mean ± std", `${number(pick("mean"))} ± ${number(pick("std"))}`);
  fact("zeros", count(pick("zeros")));
  fact("NaN, infinite", count(pick("not_finite")));
  fact("beyond 6 std", count(pick("outliers")));
  const bins = values.histogram.subarray(at * BINS, (at + 1) * BINS);
  const low = pick("min");
  const step = (pick("max") - low) / BINS;
  if (bins.length === BINS && step >= 0)
    nodes.push(histogram("Values", [...bins].map((value, bin) => ({ label: trim(low + bin * step, 3), value, text: count(value) })), 4));
  return nodes;
}
