/** Trees of named values: facts of a file, findings, differences. */
import { append, el, name } from "./dom";
import { bytes, count, withUnit } from "./format";
import type { FileSummary, Json, JsonMap } from "./types";

const MOST_ROWS = 200;

function isMap(value: Json | undefined): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function label(key: string): string {
  return key.replace(/_/g, " ");
}

function isEmpty(json: Json): boolean {
  return typeof json === "object" && json !== null && Object.keys(json).length === 0;
}

/** A path of a list stands for all of its items, unless an item has another unit. */
function unitOf(path: string, units: Record<string, string>): string | undefined {
  return units[path] ?? units[path.replace(/\[\d+\]/g, "[]")];
}

/** units : from paths such as "types[].bytes"; path : with indices. */
export function value(json: Json, path: string, units: Record<string, string>): Node {
  if (json === null) return el("span", { class: "quiet" }, "—");
  if (typeof json === "boolean") return document.createTextNode(json ? "yes" : "no");
  if (typeof json === "number") return el("span", { class: "number" }, withUnit(json, unitOf(path, units)));
  if (typeof json === "string") return name(json, "text");
  if (Array.isArray(json)) return list(json, path, units);
  return map(json, path, units);
}

function list(items: Json[], path: string, units: Record<string, string>): Node {
  if (items.length === 0) return el("span", { class: "quiet" }, "no entries");
  if (items.every(isMap)) return table(items, path, units);
  if (items.length > 3 && items.every((item) => typeof item === "string")) return foldedTexts(items as string[]);
  const shown = items.slice(0, MOST_ROWS);
  const element = el("span", { class: "list" });
  shown.forEach((item, index) => {
    if (index > 0) append(element, ", ");
    append(element, value(item, `${path}[${index}]`, units));
  });
  if (items.length > shown.length) append(element, ` … ${count(items.length - shown.length)} more`);
  return element;
}

/** A stack and the like: the first text, the others on demand. */
function foldedTexts(items: string[]): HTMLElement {
  const rest = el("ol", { class: "frames" });
  for (const item of items.slice(0, MOST_ROWS)) append(rest, el("li", {}, name(item, "text")));
  return el("details", { class: "folded" }, el("summary", {}, name(items[0] ?? ""), el("span", { class: "quiet" }, ` and ${count(items.length - 1)} more`)), rest);
}

function map(json: JsonMap, path: string, units: Record<string, string>): Node {
  const element = el("dl", { class: "facts" });
  for (const [key, item] of Object.entries(json)) {
    if (isEmpty(item)) continue;
    const inner = path === "" ? key : `${path}.${key}`;
    append(element, el("dt", {}, label(key)), el("dd", {}, value(item, inner, units)));
  }
  return element;
}

/** Sizes in short; the title has all digits. */
function tableCell(json: Json | undefined, path: string, units: Record<string, string>): HTMLElement {
  if (typeof json !== "number") return el("td", {}, json === undefined ? "" : value(json, path, units));
  const unit = unitOf(path, units);
  return el("td", { class: "number", title: withUnit(json, unit) }, unit === "bytes" ? bytes(json) : withUnit(json, unit));
}

/** A list of maps with a column for each key. */
export function table(rows: JsonMap[], path: string, units: Record<string, string>): HTMLElement {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const head = el("tr");
  for (const column of columns) append(head, el("th", rows.some((row) => typeof row[column] === "number") ? { class: "number" } : {}, label(column)));
  const body = el("tbody");
  rows.slice(0, MOST_ROWS).forEach((row, index) => {
    const line = el("tr");
    for (const column of columns) {
      const cell = row[column];
      append(line, tableCell(cell, `${path}[${index}].${column}`, units));
    }
    body.append(line);
  });
  const wrapped = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "table" }, el("table", {}, el("thead", {}, head), body));
  if (rows.length > MOST_ROWS) append(wrapped, el("p", { class: "quiet" }, `${count(rows.length - MOST_ROWS)} more rows are not shown`));
  return wrapped;
}

/** The facts of a file, like `coffer info`: scalars first, then what is nested; internals folded. */
export function fileFacts(file: FileSummary): HTMLElement {
  const skipped = new Set(["file", "format", "size", ...file.details]);
  const simple = el("dl", { class: "facts columns" });
  const nested = el("div", { class: "nested" });
  for (const [key, item] of Object.entries(file.info)) {
    if (skipped.has(key) || isEmpty(item)) continue;
    const shown = value(item, key, file.units);
    if (typeof item !== "object" || item === null) append(simple, el("div", {}, el("dt", {}, label(key)), el("dd", {}, shown)));
    else append(nested, fold(key, item, shown));
  }
  const element = el("div", { class: "file-facts" }, simple, nested);
  if (file.details.length > 0) {
    const details: JsonMap = {};
    for (const key of file.details) details[key] = file.info[key] ?? null;
    append(element, el("details", {}, el("summary", {}, "internals"), value(details, "", file.units)));
  }
  return element;
}

function fold(key: string, item: Json, shown: Node): HTMLElement {
  const size = Array.isArray(item) ? item.length : Object.keys(item as JsonMap).length;
  const details = el("details", {}, el("summary", {}, label(key), el("span", { class: "quiet" }, ` ${count(size)}`)), shown);
  details.open = size <= 12;
  return details;
}

export function findings(file: FileSummary): HTMLElement {
  const element = el("div", { class: "findings" });
  if (file.error) append(element, el("p", { class: "error" }, file.error));
  if (!file.findings) {
    append(element, el("p", { class: "quiet" }, "The file is being checked."));
    return element;
  }
  if (file.findings.length === 0) {
    append(element, el("p", {}, "No findings.", file.not_verified ? el("span", { class: "quiet" }, ` ${file.not_verified}`) : null));
    return element;
  }
  const body = el("tbody");
  for (const finding of file.findings)
    append(
      body,
      el(
        "tr",
        {},
        el("td", {}, el("span", { class: `chip ${finding.severity}` }, finding.severity)),
        el("td", {}, el("code", {}, finding.code)),
        el("td", { class: "number" }, finding.offset === null ? "" : count(finding.offset)),
        el("td", {}, name(finding.text, "text")),
      ),
    );
  const head = el("tr", {}, el("th", {}, "severity"), el("th", {}, "code"), el("th", {}, "offset"), el("th", {}, "what is wrong"));
  append(element, el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "findings" }, el("table", {}, el("thead", {}, head), body)));
  return element;
}
