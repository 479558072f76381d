/** Training sets: what a sample consists of, how labels and sizes are distributed, and samples to look at. */
import { histogram, ranking } from "../bars";
import type { Chunks } from "../chunks";
import { append, el, name } from "../dom";
import { compared, figures } from "../figures";
import { bytes, count, trim } from "../format";
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
  const overview = shell.section("overview", "Overview", totals.length > 1 ? `coffer diff ${shell.path(0)} ${shell.path(1)}` : `coffer stats ${shell.path()}`);
  overview.body.append(
    figures([
      compared("samples", totals.map((item) => item.samples), count),
      compared("fields", totals.map((item) => item.fields), count),
      compared("values", totals.map((item) => item.payload_bytes), bytes),
    ]),
  );
  if (totals.length > 1) return;
  const fields = summary.view["fields"] as unknown as Field[];
  const samples = await loadSamples(chunks, fields);
  schemaSection(shell, fields);
  if (chunks.has("pictures.data")) await gallerySection(shell, chunks, fields, samples, Number(summary.view["picture_field"]));
  sampleSection(shell, fields, samples);
  await distributionSection(shell, chunks, fields);
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
}

async function loadSamples(chunks: Chunks, fields: Field[]): Promise<Samples> {
  const texts = await chunks.texts();
  const columns: string[][] = [];
  for (let field = 0; field < fields.length; field++) columns.push([...(await chunks.u32(`samples.value.${field}`))].map((at) => texts[at] ?? ""));
  return { number: await chunks.f64("samples.number"), text: columns };
}

function sampleSection(shell: Shell, fields: Field[], samples: Samples): void {
  if (samples.number.length === 0) return;
  const section = shell.section("samples", "Samples", `coffer head ${shell.path()}`);
  const columns = [{ title: "sample", width: "6rem", numeric: true, value: (row: number) => samples.number[row] ?? 0, text: (row: number) => count(samples.number[row] ?? 0) }];
  const table = new VirtualTable({
    label: "Samples",
    rows: samples.number.length,
    columns: [
      ...columns,
      ...fields.map((field, index) => ({
        title: field.name,
        width: field.type === "int" || field.type === "float" ? "minmax(6rem, 1fr)" : "minmax(11rem, 3fr)",
        text: (row: number) => samples.text[index]?.[row] ?? "",
        render: (row: number) => name(samples.text[index]?.[row] ?? ""),
      })),
    ],
    matches: (row, query) => samples.text.some((column) => column[row]?.toLowerCase().includes(query)),
    height: 420,
  });
  table.sortAscending();
  section.body.append(table.element);
  shell.onSearch((query) => table.filter(query));
}

// ---- Gallery ----

async function gallerySection(shell: Shell, chunks: Chunks, fields: Field[], samples: Samples, field: number): Promise<void> {
  const section = shell.section("gallery", "Gallery", `coffer sheet ${shell.path()} -o sheet.png`);
  const ends = await chunks.u32("pictures.ends");
  const data = await chunks.u8("pictures.data");
  const isLabel = (item: Field, index: number): boolean => index !== field && (item.type === "int" || item.type === "text");
  const named = fields.findIndex((item, index) => isLabel(item, index) && /class|caption/i.test(item.name));
  const label = named >= 0 ? named : fields.findIndex((item, index) => isLabel(item, index) && item.name !== "path");
  const grid = el("ul", { class: "gallery" });
  const tiles: { element: HTMLElement; text: string }[] = [];
  const urls = new Map<Element, string>();
  const pictures = new Map<Element, Uint8Array<ArrayBuffer>>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const image = entry.target as HTMLImageElement;
        const bytesOfImage = pictures.get(image);
        if (entry.isIntersecting && bytesOfImage && !urls.has(image)) {
          const url = URL.createObjectURL(new Blob([bytesOfImage], { type: "image/jpeg" }));
          urls.set(image, url);
          image.src = url;
        } else if (!entry.isIntersecting && urls.has(image)) {
          URL.revokeObjectURL(urls.get(image) ?? "");
          urls.delete(image);
          image.removeAttribute("src");
        }
      }
    },
    { rootMargin: "600px" },
  );
  for (let row = 0; row < samples.number.length; row++) {
    const begin = row === 0 ? 0 : (ends[row - 1] ?? 0);
    const end = ends[row] ?? 0;
    const text = label >= 0 ? (samples.text[label]?.[row] ?? "") : "";
    const sample = count(samples.number[row] ?? 0);
    const tile = el("li", { title: samples.text.map((column, index) => `${fields[index]?.name}: ${column[row]}`).join("\n") });
    if (end > begin) {
      const image = el("img");
      image.alt = `sample ${sample}`;
      pictures.set(image, new Uint8Array(data.buffer as ArrayBuffer, begin, end - begin));
      observer.observe(image);
      tile.append(image);
    } else {
      append(tile, el("span", { class: "missing" }, "cannot be shown"));
    }
    append(tile, el("p", {}, el("span", { class: "quiet" }, sample), " ", name(text)));
    tiles.push({ element: tile, text: samples.text.map((column) => column[row] ?? "").join("\n").toLowerCase() });
    grid.append(tile);
  }
  section.body.append(grid);
  shell.onSearch((query) => {
    for (const tile of tiles) tile.element.hidden = query !== "" && !tile.text.includes(query);
  });
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
  const numeric = values.every((item) => /^-?\d+$/.test(item.value));
  if (numeric && values.length > 12 && values.length <= 200) {
    const sorted = [...values].sort((a, b) => Number(a.value) - Number(b.value));
    return histogram(`${field.name}: samples by value`, sorted.map((item) => ({ label: item.value, value: item.count, text: count(item.count) })));
  }
  const shown = values.slice(0, 20);
  const title = values.length > shown.length ? `${field.name}: the ${shown.length} most frequent of ${count(values.length)} values` : `${field.name}: samples by value`;
  return ranking(title, shown.map((item) => ({ label: item.value, value: item.count, text: count(item.count) })));
}
