/** Files without a page of their own: the entries that `coffer ls` lists. */
import type { Chunks } from "../chunks";
import { name } from "../dom";
import { number, withUnit } from "../format";
import type { Shell } from "../shell";
import { VirtualTable, type Column } from "../table";
import type { JsonMap } from "../types";

export async function otherPage(shell: Shell, chunks: Chunks): Promise<void> {
  if (!chunks.has("entries")) return;
  const { entries } = (await chunks.json("entries")) as { entries: JsonMap[] };
  const first = entries[0];
  if (!first) return;
  const section = shell.section("entries", "Entries", `coffer ls ${shell.path()}`);
  const text = (row: number, key: string): string => {
    const cell = entries[row]?.[key];
    if (cell === null || cell === undefined) return "";
    if (typeof cell === "number") return key === "size" || key.endsWith("bytes") ? withUnit(cell, "bytes") : number(cell);
    return typeof cell === "string" ? cell : JSON.stringify(cell);
  };
  const columns = Object.keys(first).map((key): Column => {
    const numeric = typeof first[key] === "number";
    return {
      title: key.replace(/_/g, " "),
      width: numeric ? "minmax(6rem, 1fr)" : "minmax(8rem, 2fr)",
      text: (row) => text(row, key),
      ...(numeric ? { numeric: true, value: (row: number) => Number(entries[row]?.[key] ?? 0) } : { render: (row: number) => name(text(row, key)) }),
    };
  });
  const table = new VirtualTable({
    label: "Entries",
    columns,
    rows: entries.length,
    matches: (row, query) => JSON.stringify(entries[row]).toLowerCase().includes(query),
  });
  section.body.append(table.element);
  shell.onSearch((query) => table.filter(query));
}
