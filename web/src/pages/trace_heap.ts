/** The heap snapshot of a trace: objects by type, the references that keep them alive, the largest objects. */
import type { Chunks } from "../chunks";
import { append, choice, el, name } from "../dom";
import { bytes, count, counted, duration, percent, shell as quote, signed } from "../format";
import type { Shell } from "../shell";
import { VirtualTable, type Column } from "../table";
import type { Summary } from "../types";

interface Snapshot {
  number: number;
  snapshots: number;
  time_us: number;
  objects: number;
  bytes: number;
}

interface Objects {
  type: string[];
  address: string[];
  bytes: Float64Array;
  retained: Float64Array;
}

async function words(chunks: Chunks, column: string): Promise<string[]> {
  const texts = await chunks.texts();
  return [...(await chunks.u32(column))].map((at) => texts[at] ?? "");
}

async function loadObjects(chunks: Chunks, group: string): Promise<Objects> {
  return {
    type: await words(chunks, `${group}.type`),
    address: await words(chunks, `${group}.address`),
    bytes: await chunks.f64(`${group}.bytes`),
    retained: await chunks.f64(`${group}.retained`),
  };
}

function size(title: string, values: Float64Array, help: string): Column {
  return { title, width: "5.6rem", numeric: true, help, value: (row) => values[row] ?? 0, text: (row) => bytes(values[row] ?? 0) };
}

const RETAINED = "Bytes that would be freed with the objects";

export async function heapSection(shell: Shell, chunks: Chunks, summary: Summary): Promise<void> {
  const snapshot = summary.view["heap"] as unknown as Snapshot | undefined;
  if (!snapshot) return;
  const section = shell.section("heap", "Objects on the heap", `coffer heap ${shell.path()}`);
  const about = `Snapshot ${count(snapshot.number)} of ${count(snapshot.snapshots)}, ${duration(snapshot.time_us)} after the start: ${counted(snapshot.objects, "object")}, ${bytes(snapshot.bytes)}.`;
  const panel = el("div", { class: "stack-panel" });
  const types = await typeTable(shell, chunks, snapshot, panel, (command) => section.setCommand(command));
  const largest = await objectTable(chunks);
  const beside = el("div", { class: "beside" }, types.element, panel);
  largest.element.hidden = true;
  const choices = choice(
    "What to list",
    [
      { value: "types", label: "by type" },
      { value: "objects", label: "largest objects", title: "The objects that retain most" },
    ],
    "types",
    (value) => {
      beside.hidden = value !== "types";
      largest.element.hidden = value === "types";
      section.setCommand(`coffer heap ${shell.path()}${value === "types" ? "" : " --objects"}`);
    },
  );
  append(section.controls, choices.element);
  append(section.body, el("p", { class: "readout" }, about), beside, largest.element);
  types.selectFirst();
  section.setCommand(`coffer heap ${shell.path()}`);
  shell.onSearch((query) => {
    types.filter(query);
    largest.filter(query);
  });
}

async function typeTable(shell: Shell, chunks: Chunks, snapshot: Snapshot, panel: HTMLElement, setCommand: (command: string) => void): Promise<VirtualTable> {
  const type = await words(chunks, "heap.type");
  const objects = await chunks.f64("heap.objects");
  const own = await chunks.f64("heap.bytes");
  const retained = await chunks.f64("heap.retained");
  const before = await chunks.f64("heap.before");
  const first = await chunks.u32("heap.path.first");
  const reference = await words(chunks, "heap.path.reference");
  const path = await loadObjects(chunks, "heap.path");
  const columns: Column[] = [
    { title: "type", width: "minmax(10rem, 1fr)", text: (row) => type[row] ?? "", render: (row) => name(type[row] ?? "") },
    { title: "objects", width: "5.6rem", numeric: true, value: (row) => objects[row] ?? 0, text: (row) => count(objects[row] ?? 0) },
    size("bytes", own, "Bytes of the objects themselves"),
    size("retained", retained, RETAINED),
  ];
  const change = (row: number): number => (own[row] ?? 0) - (before[row] ?? 0);
  if (snapshot.snapshots > 1) columns.push({ title: "change", width: "6rem", numeric: true, help: "Since the first snapshot", value: change, text: (row) => signed(bytes(change(row)), change(row)) });
  return new VirtualTable({
    label: "Types",
    columns,
    rows: type.length,
    sortBy: 2,
    matches: (row, query) => (type[row] ?? "").toLowerCase().includes(query),
    select: (row) => {
      setCommand(`coffer heap ${shell.path()} --path ${quote(type[row] ?? "")}`);
      const list = el("ol", { class: "frames" });
      for (let at = first[row] ?? 0; at < (first[row + 1] ?? 0); at++) {
        const label = reference[at] ?? "";
        append(list, el("li", {}, label === "" ? null : name(label), label === "" ? null : ": ", el("strong", {}, name(path.type[at] ?? "")), el("span", { class: "quiet" }, ` retains ${bytes(path.retained[at] ?? 0)}`)));
      }
      const share = percent(own[row] ?? 0, snapshot.bytes);
      const empty = el("p", { class: "quiet" }, "The command finds what keeps an object of this type alive.");
      panel.replaceChildren(el("h3", {}, name(type[row] ?? "")), el("p", {}, `${share} of the bytes. The shortest way from a root to an object of this type:`), list.childElementCount > 0 ? list : empty);
    },
  });
}

async function objectTable(chunks: Chunks): Promise<VirtualTable> {
  const objects = await loadObjects(chunks, "heap.largest");
  return new VirtualTable({
    label: "Largest objects",
    columns: [
      { title: "type", width: "minmax(10rem, 1fr)", text: (row) => objects.type[row] ?? "", render: (row) => name(objects.type[row] ?? "") },
      { title: "address", width: "10rem", text: (row) => objects.address[row] ?? "" },
      size("bytes", objects.bytes, "Bytes of the object itself"),
      size("retained", objects.retained, RETAINED),
    ],
    rows: objects.type.length,
    sortBy: 3,
    matches: (row, query) => (objects.type[row] ?? "").toLowerCase().includes(query),
  });
}
