/** Training sets: what a sample consists of, how labels and sizes are distributed, and samples to look at. */
import { histogram, ranking } from "../bars";
import type { Chunks } from "../chunks";
import { append, el, name } from "../dom";
import { compared, overview } from "../figures";
import { commandPart, Filter, meets, type Condition } from "../filter";
import { bytes, count, counted, trim } from "../format";
import { arrayKind, Gallery, pictureKind, soundKind, textKind, type TileKind } from "../gallery";
import type { Shell } from "../shell";
import { VirtualTable } from "../table";
import type { Summary } from "../types";

interface Range {
  min: number;
  max: number;
  mean: number;
}

interface Field {
  name: string;
  type: string;
  optional: boolean;
  compressed: boolean;
  encrypted: boolean;
  present: number;
  absent: number;
  bytes?: Range;
  scalars?: Range;
  widths?: Range;
  heights?: Range;
  seconds?: Range;
  tokens?: Range;
  values?: { value: string; count: number }[];
  sizes: boolean;
}

interface SetTotals {
  samples: number;
  fields: number;
  payload_bytes: number;
}

export async function setPage(shell: Shell, chunks: Chunks, summary: Summary): Promise<void> {
  const totals = summary.view["sets"] as unknown as SetTotals[];
  const list = [
    compared("samples", totals.map((item) => item.samples), count),
    compared("fields", totals.map((item) => item.fields), count),
    compared("values", totals.map((item) => item.payload_bytes), bytes),
  ];
  const damaged = Number(summary.view["damaged"] ?? 0);
  if (totals.length === 1 && summary.view["verified"] === true) list.push({ label: "damaged samples", value: count(damaged), note: damaged === 0 ? "every value was read" : "listed below" });
  overview(shell, totals.length, "stats", list);
  if (totals.length > 1) return;
  const fields = summary.view["fields"] as unknown as Field[];
  const samples = await loadSamples(chunks, fields);
  schemaSection(shell, fields);
  await sampleSection(shell, chunks, summary, fields, samples);
  await damageSection(shell, chunks, damaged);
  await distributionSection(shell, chunks, fields);
  await orderSection(shell, chunks, totals[0]?.samples ?? 0);
}

// ---- Fields ----

function span(range: Range | undefined, format: (value: number) => string): string {
  if (!range) return "";
  return range.min === range.max ? format(range.min) : `${format(range.min)} to ${format(range.max)}, mean ${format(range.mean)}`;
}

function schemaSection(shell: Shell, fields: Field[]): void {
  const section = shell.section("schema", "Fields", `coffer info ${shell.path()}`);
  const body = el("tbody");
  for (const field of fields) {
    const flags = [field.optional ? "optional" : "", field.compressed ? "zstd" : "", field.encrypted ? "encrypted" : ""].filter((flag) => flag !== "");
    const side = field.widths && field.heights ? `${span(field.widths, count)} × ${span(field.heights, count)}` : "";
    const plain = (value: number): string => trim(value, 5);
    const values = [side, span(field.scalars, plain), field.seconds ? `${span(field.seconds, plain)} s` : "", field.tokens ? `${span(field.tokens, count)} tokens` : ""];
    append(
      body,
      el(
        "tr",
        {},
        el("td", {}, name(field.name)),
        el("td", {}, field.type),
        el("td", { class: "number" }, count(field.present)),
        el("td", { class: "number" }, field.absent > 0 ? count(field.absent) : "·"),
        el("td", {}, values.filter((value) => value !== "").join("; ")),
        el("td", {}, span(field.bytes, bytes)),
        el("td", {}, flags.join(", ")),
      ),
    );
  }
  const head = el("tr");
  for (const title of ["field", "type", "present", "absent", "values", "stored size", "stored as"]) append(head, el("th", title.endsWith("sent") ? { class: "number" } : {}, title));
  append(section.body, el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "fields" }, el("table", { class: "wide" }, el("thead", {}, head), body)));
}

// ---- Samples ----

interface Samples {
  number: Float64Array;
  /** By field, then by sample. */
  text: string[][];
  /** By field: the numbers of all samples of the set, where the page has them. */
  column: (Float64Array | undefined)[];
  damaged: Set<number>;
}

async function loadSamples(chunks: Chunks, fields: Field[]): Promise<Samples> {
  const texts = await chunks.texts();
  const text: string[][] = [];
  const column: (Float64Array | undefined)[] = [];
  for (let field = 0; field < fields.length; field++) {
    text.push([...(await chunks.u32(`samples.value.${field}`))].map((at) => texts[at] ?? ""));
    column.push(chunks.has(`columns.${field}`) ? await chunks.f64(`columns.${field}`) : undefined);
  }
  return { number: await chunks.f64("samples.number"), text, column, damaged: new Set(await chunks.f64("damaged.sample")) };
}

function numberOf(samples: Samples, field: number, row: number): number {
  const column = samples.column[field];
  return column ? (column[samples.number[row] ?? 0] ?? NaN) : Number(samples.text[field]?.[row]);
}

/** Whether the sample of a row meets all conditions. */
function keeps(samples: Samples, fields: Field[], conditions: Condition[], row: number): boolean {
  return conditions.every((condition) => {
    const type = fields[condition.field]?.type;
    const number = type === "int" || type === "float" ? numberOf(samples, condition.field, row) : undefined;
    return meets(condition, samples.text[condition.field]?.[row] ?? "", number);
  });
}

/** The number of samples of the whole set that meet the conditions, when the page has their numbers. */
function countAll(samples: Samples, conditions: Condition[]): number | undefined {
  const columns = conditions.map((condition) => samples.column[condition.field]);
  const length = columns[0]?.length;
  if (length === undefined || columns.some((column) => column === undefined)) return undefined;
  let found = 0;
  for (let at = 0; at < length; at++) if (conditions.every((condition, index) => meets(condition, "", columns[index]?.[at]))) found++;
  return found;
}

function sayFound(filter: Filter, samples: Samples, total: number, shown: number): void {
  const whole = countAll(samples, filter.conditions);
  filter.result.replaceChildren();
  if (filter.conditions.length === 0) return;
  if (whole !== undefined) append(filter.result, el("strong", {}, count(whole)), ` of ${count(total)} samples meet the conditions`, shown < whole ? `; ${count(shown)} of them are shown` : "");
  else append(filter.result, el("strong", {}, count(shown)), ` of the ${count(samples.number.length)} samples shown meet the conditions`, samples.number.length < total ? "; the command searches all of them" : "");
}

async function sampleSection(shell: Shell, chunks: Chunks, summary: Summary, fields: Field[], samples: Samples): Promise<void> {
  if (samples.number.length === 0) return;
  const section = shell.section("samples", "Samples", `coffer head ${shell.path()}`);
  const gallery = await makeGallery(chunks, summary, fields, samples);
  const table = makeTable(fields, samples);
  const total = (summary.view["sets"] as unknown as SetTotals[])[0]?.samples ?? 0;
  const lower = samples.number.length > 0 ? Array.from(samples.number, (_, row) => samples.text.map((column) => column[row] ?? "").join("\n").toLowerCase()) : [];
  let query = "";
  const arrange = (): void => {
    const kept = Array.from(samples.number, (_, row) => keeps(samples, fields, filter.conditions, row));
    table.filter(query, (row) => kept[row] ?? false);
    gallery?.view.filter((row) => (kept[row] ?? false) && (query === "" || (lower[row] ?? "").includes(query)));
    sayFound(filter, samples, total, kept.filter((keep) => keep).length);
    section.setCommand(`coffer head ${shell.path()}${commandPart(filter.conditions, fields)}`);
  };
  let ready = false;
  const filter = new Filter(fields, () => {
    arrange();
    if (ready) save(filter.conditions.length > 0 ? { where: JSON.stringify(filter.conditions) } : {});
  });
  const save = shell.remember("samples", (state) => filter.restore(state["where"] ?? "[]"));
  if (gallery) append(section.controls, gallery.view.controls);
  append(section.body, filter.element, filter.result);
  if (gallery) append(section.body, gallery.player, gallery.view.element);
  section.body.append(table.element);
  ready = true;
  shell.onSearch((text) => {
    query = text;
    arrange();
  });
}

function makeTable(fields: Field[], samples: Samples): VirtualTable {
  const table = new VirtualTable({
    label: "Samples",
    rows: samples.number.length,
    columns: [
      {
        title: "sample",
        width: "6rem",
        numeric: true,
        value: (row: number) => samples.number[row] ?? 0,
        text: (row: number) => count(samples.number[row] ?? 0),
        render: (row: number) => el("span", samples.damaged.has(samples.number[row] ?? -1) ? { class: "chip error", title: "damaged" } : {}, count(samples.number[row] ?? 0)),
      },
      ...fields.map((field, index) => ({
        title: field.name,
        width: field.type === "int" || field.type === "float" ? "minmax(6rem, 1fr)" : "minmax(11rem, 3fr)",
        text: (row: number) => samples.text[index]?.[row] ?? "",
        render: (row: number) => name(samples.text[index]?.[row] ?? ""),
        ...(samples.column[index] ? { value: (row: number) => numberOf(samples, index, row) } : {}),
      })),
    ],
    matches: (row, query) => samples.text.some((column) => column[row]?.toLowerCase().includes(query)),
    height: 420,
  });
  table.sortAscending();
  return table;
}

/** Tiles of the pictures, sounds, arrays and texts that the page has; undefined without any. */
async function makeGallery(chunks: Chunks, summary: Summary, fields: Field[], samples: Samples): Promise<{ view: Gallery; player: HTMLElement } | undefined> {
  const sampleOf = (row: number): number => samples.number[row] ?? 0;
  const kinds: TileKind[] = [];
  const player = el("div", { hidden: "" });
  if (chunks.has("pictures.data")) kinds.push(await pictureKind(chunks, Number(summary.view["picture_field"]), sampleOf));
  if (chunks.has("sounds.data")) {
    const sounds = await soundKind(chunks, Number(summary.view["sound_field"]), sampleOf);
    player.append(sounds.player);
    kinds.push(sounds);
  }
  if (chunks.has("arrays.cells")) kinds.push(await arrayKind(chunks, Number(summary.view["array_field"]), sampleOf));
  const text = fields.findIndex((field) => field.type === "text" && field.name !== "path");
  if (text >= 0) kinds.push(textKind(text, samples.text[text] ?? []));
  if (kinds.length === 0) return undefined;
  const caption = (row: number): Node[] => {
    const label = labelField(fields, kinds);
    const words = label >= 0 ? (samples.text[label]?.[row] ?? "") : "";
    const sample = el("span", { class: "quiet" }, `${count(sampleOf(row))} `);
    return [sample, ...(samples.damaged.has(sampleOf(row)) ? [el("span", { class: "chip error" }, "damaged")] : []), name(words)];
  };
  const view = new Gallery({
    kinds,
    rows: samples.number.length,
    caption,
    title: (row) => samples.text.map((column, index) => `${fields[index]?.name}: ${column[row]}`).join("\n"),
    changed: (kind) => (player.hidden = kind.id !== "sounds"),
  });
  return { view, player };
}

/** The field below a tile: a class or caption, else the first number or text that is not drawn. */
function labelField(fields: Field[], kinds: TileKind[]): number {
  const isLabel = (item: Field, index: number): boolean => !kinds.some((kind) => kind.field === index && kind.id !== "texts") && (item.type === "int" || item.type === "text");
  const named = fields.findIndex((item, index) => isLabel(item, index) && /class|caption|label/i.test(item.name));
  const other = fields.findIndex((item, index) => isLabel(item, index) && item.name !== "path");
  return named >= 0 ? named : other >= 0 ? other : fields.findIndex(isLabel);
}

// ---- Damage ----

async function damageSection(shell: Shell, chunks: Chunks, damaged: number): Promise<void> {
  const numbers = await chunks.f64("damaged.sample");
  if (numbers.length === 0) return;
  const section = shell.section("damaged", "Damaged samples", `coffer check --full ${shell.path()}`);
  const texts = await chunks.texts();
  const reasons = [...(await chunks.u32("damaged.reason"))].map((at) => texts[at] ?? "");
  const table = new VirtualTable({
    label: "Damaged samples",
    rows: numbers.length,
    columns: [
      { title: "sample", width: "6rem", numeric: true, value: (row) => numbers[row] ?? 0, text: (row) => count(numbers[row] ?? 0) },
      { title: "reason", width: "minmax(16rem, 1fr)", text: (row) => reasons[row] ?? "", render: (row) => name(reasons[row] ?? "") },
    ],
    matches: (row, query) => (reasons[row] ?? "").toLowerCase().includes(query),
    height: 320,
  });
  table.sortAscending();
  append(section.body, el("p", {}, `${counted(damaged, "sample")} cannot be read completely. `, el("span", { class: "quiet" }, "'coffer repair' saves the others.")), table.element);
  shell.onSearch((query) => table.filter(query));
}

// ---- Order ----

async function orderSection(shell: Shell, chunks: Chunks, total: number): Promise<void> {
  const order = await chunks.f64("order.sample");
  if (order.length < 2) return;
  const section = shell.section("order", "Order of a training run", `coffer order ${shell.path()}`);
  const part = { rank: 0, world: 1, worker: 0, workers: 1 };
  const list = el("p", { class: "order" });
  const says = el("p", { class: "quiet" });
  const show = (): void => {
    part.rank = Math.min(part.rank, part.world - 1);
    part.worker = Math.min(part.worker, part.workers - 1);
    for (const key of ["rank", "world", "worker", "workers"] as const) inputs[key].value = String(part[key]);
    /* The samples of the epoch are dealt to the ranks, and those of a rank to its workers. */
    const mine: number[] = [];
    for (let at = part.worker * part.world + part.rank; at < order.length && mine.length < 200; at += part.workers * part.world) mine.push(order[at] ?? 0);
    list.replaceChildren(...mine.map((sample) => el("span", {}, count(sample))));
    const length = Math.ceil((total - part.worker * part.world - part.rank) / (part.workers * part.world));
    says.replaceChildren();
    append(says, `The first ${count(mine.length)} of ${count(Math.max(length, 0))} samples in epoch 0 with seed 0.`);
    const words = (["rank", "world", "worker", "workers"] as const).filter((key) => part[key] !== (key.endsWith("d") || key === "workers" ? 1 : 0)).map((key) => ` --${key} ${part[key]}`);
    section.setCommand(`coffer order ${shell.path()}${words.join("")}`);
  };
  const input = (key: keyof typeof part, least: number): HTMLInputElement => {
    const element = el("input", { type: "number", "aria-label": key });
    element.min = String(least);
    element.max = "1024";
    element.addEventListener("change", () => {
      part[key] = Math.min(1024, Math.max(least, Math.floor(Number(element.value)) || least));
      show();
    });
    return element;
  };
  const inputs = { rank: input("rank", 0), world: input("world", 1), worker: input("worker", 0), workers: input("workers", 1) };
  for (const [label, key] of [["rank", "rank"], ["of", "world"], ["worker", "worker"], ["of", "workers"]] as const) append(section.controls, el("label", { class: "field" }, `${label} `, inputs[key]));
  append(section.body, says, list);
  show();
}

// ---- Distributions ----

async function distributionSection(shell: Shell, chunks: Chunks, fields: Field[]): Promise<void> {
  const section = shell.section("distributions", "Distributions", `coffer stats ${shell.path()}`);
  const charts = el("div", { class: "charts" });
  for (let index = 0; index < fields.length; index++) {
    const field = fields[index];
    if (!field) continue;
    const values = field.values ?? [];
    if (values.length > 1) charts.append(valueChart(field, values));
    if (field.sizes) {
      const buckets = await chunks.f64(`sizes.${index}`);
      const used = [...buckets.keys()].filter((at) => (buckets[at] ?? 0) > 0);
      if (used.length > 1) {
        const bars = [];
        for (let at = used[0] ?? 0; at <= (used[used.length - 1] ?? 0); at++) bars.push({ label: bytes(at === 0 ? 0 : 2 ** (at - 1)), value: buckets[at] ?? 0, text: count(buckets[at] ?? 0) });
        charts.append(histogram(`${field.name}: stored sizes`, bars));
      }
    }
  }
  if (charts.childElementCount === 0) append(charts, el("p", { class: "empty" }, "All values are alike."));
  section.body.append(charts);
}

function valueChart(field: Field, values: { value: string; count: number }[]): HTMLElement {
  const numeric = values.every((item) => /^-?\d{1,6}$/.test(item.value));
  if (numeric && values.length > 12 && values.length <= 200) {
    const sorted = [...values].sort((a, b) => Number(a.value) - Number(b.value));
    return histogram(`${field.name}: samples by value`, sorted.map((item) => ({ label: item.value, value: item.count, text: count(item.count) })));
  }
  const shown = values.slice(0, 20);
  const title = values.length > shown.length ? `${field.name}: the ${shown.length} most frequent of ${count(values.length)} values` : `${field.name}: samples by value`;
  return ranking(title, shown.map((item) => ({ label: item.value, value: item.count, text: count(item.count) })));
}
