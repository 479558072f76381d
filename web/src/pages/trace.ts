/** Traces: when memory was used, and by whom. */
import { histogram } from "../bars";
import type { Chunks } from "../chunks";
import { append, choice, el, name } from "../dom";
import { table } from "../facts";
import { overview, type Figure } from "../figures";
import { Flame, type FlameData } from "../flame";
import { baseName, bytes, count, duration, percent, signed } from "../format";
import type { Shell } from "../shell";
import { VirtualTable } from "../table";
import { Timeline, type TimelineData } from "../timeline";
import { heapSection } from "./trace_heap";
import type { JsonMap, Summary } from "../types";
import { loadWindows } from "../windows";

const WHAT = ["peak", "leaks", "total", "temporaries"] as const;
type What = (typeof WHAT)[number];
/** Of a window in the timeline: allocated in it, or live at its end. */
const WINDOW_KINDS = ["allocated in the window", "live at its end"] as const;
type Shown = What | (typeof WINDOW_KINDS)[number];
type OnWindow = (begin: number, end: number, whole: boolean) => void;

const MEANING: Record<What, string> = {
  peak: "live when memory use was highest",
  leaks: "never freed",
  total: "all allocations together",
  temporaries: "freed before the next allocation of the thread",
};

interface TraceView {
  events: number;
  allocs: number;
  frees: number;
  duration_us: number;
  peak_time_us: number;
  measures: Record<What, { bytes: number; allocs: number; known: boolean; error_bytes: number }>;
  profile: string | null;
  time_unit: string | null;
  has_order: boolean;
  begin_us: number;
  end_us: number;
}

export async function tracePage(shell: Shell, chunks: Chunks, summary: Summary): Promise<void> {
  const views = summary.view["traces"] as unknown as TraceView[];
  const first = views[0];
  if (!first) return;
  const known = WHAT.filter((what) => views.every((view) => view.measures[what].known));
  numbers(shell, views);
  const watchers: OnWindow[] = [];
  const onWindow: OnWindow = (...window) => watchers.forEach((watcher) => watcher(...window));
  for (let i = 0; i < views.length; i++) await timelineSection(shell, chunks, summary, views[i] as TraceView, i, views.length, onWindow);
  const watcher = await flameSection(shell, chunks, summary, views, known);
  if (watcher) watchers.push(watcher);
  if (views.length === 1) {
    await stackSection(shell, chunks, first, known);
    partSection(shell, summary);
    if (first.has_order) await histogramSection(shell, chunks, first);
    await heapSection(shell, chunks, summary);
  }
}

// ---- Figures ----

function numbers(shell: Shell, views: TraceView[]): void {
  const list: Figure[] = [];
  const a = views[0] as TraceView;
  const b = views[1];
  for (const what of WHAT) {
    const measure = a.measures[what];
    const other = b?.measures[what];
    if (!measure.known || (other && !other.known)) continue;
    if (other) {
      const change = other.bytes - measure.bytes;
      list.push({ label: what, value: signed(bytes(change), change), note: `${bytes(measure.bytes)} → ${bytes(other.bytes)}` });
    } else {
      list.push({ label: what, value: bytes(measure.bytes), note: `${plusMinus(measure.error_bytes).trim()} ${count(measure.allocs)} blocks, ${MEANING[what]}`.trim() });
    }
  }
  const last = b ?? a;
  const time = (value: number): string => (last.time_unit ? `${count(value)} ${last.time_unit}` : duration(value));
  if (last.duration_us > 0) list.push({ label: "duration", value: time(last.duration_us), note: b ? `${time(a.duration_us)} → ${time(b.duration_us)}` : `peak at ${time(a.peak_time_us)}` });
  if (last.has_order) list.push({ label: "events", value: count(last.events), note: b ? `${count(a.events)} → ${count(b.events)}` : `${count(a.allocs)} allocations, ${count(a.frees)} frees` });
  overview(shell, views.length, "stats", list);
}

// ---- Timeline ----

async function timelineSection(shell: Shell, chunks: Chunks, summary: Summary, view: TraceView, index: number, total: number, onWindow: OnWindow): Promise<void> {
  const group = index === 0 ? "timeline" : "timeline_b";
  if (chunks.count(`${group}.time`) === 0 || view.end_us <= view.begin_us) return;
  const id = index === 0 ? "timeline" : "timeline-b";
  const title = total === 1 ? "Timeline" : `Timeline of ${baseName(summary.files[index]?.name ?? "")}`;
  const path = shell.path(index);
  const section = shell.section(id, title, `coffer timeline ${path}`);
  const texts = await chunks.texts();
  const labels = await chunks.u32(`${group}.mark_label`);
  const column = (part: string): Promise<Float64Array> => chunks.f64(`${group}.${part}`);
  const data: TimelineData = {
    time: await column("time"),
    live_bytes: await column("live_bytes"),
    high_bytes: await column("high_bytes"),
    live_allocs: await column("live_allocs"),
    allocated_bytes: await column("allocated_bytes"),
    allocs: await column("allocs"),
    mark_time: await column("mark_time"),
    mark_label: [...labels].map((at) => texts[at] ?? ""),
    mark_type: await chunks.u8(`${group}.mark_type`),
    begin: view.begin_us,
    end: view.end_us,
    unit: view.time_unit,
  };
  let ready = false;
  const save = shell.remember(id, (state) => {
    if (state["from"] && state["to"]) timeline.zoomTo(Number(state["from"]), Number(state["to"]));
  });
  const timeline = new Timeline(data, (begin, end, whole) => {
    const from = Math.max(0, Math.floor(begin));
    const to = Math.ceil(end);
    section.setCommand(whole ? `coffer timeline ${path}` : `coffer peak ${path} --window ${from}us..${to}us`);
    onWindow(begin, end, whole);
    if (ready) save(whole ? {} : { from: String(from), to: String(to) });
  });
  append(section.controls, timeline.controls);
  section.body.append(timeline.element);
  timeline.start();
  ready = true;
  shell.onEscape(() => timeline.zoomOut());
}

// ---- Flame graph ----

async function loadFlame(chunks: Chunks, what: What): Promise<FlameData> {
  const group = `flame.${what}`;
  const texts = await chunks.texts();
  const names = await chunks.u32(`${group}.name`);
  const places = await chunks.u32(`${group}.place`);
  const data: FlameData = {
    parent: await chunks.u32(`${group}.parent`),
    name: [...names].map((at) => texts[at] ?? ""),
    place: [...places].map((at) => texts[at] ?? ""),
    bytes: await chunks.f64(`${group}.bytes`),
    own: await chunks.f64(`${group}.own`),
    allocs: await chunks.f64(`${group}.allocs`),
  };
  if (chunks.has(`${group}.error`)) data.error = await chunks.f64(`${group}.error`);
  if (chunks.has(`${group}.before`)) {
    data.before = await chunks.f64(`${group}.before`);
    data.after = await chunks.f64(`${group}.after`);
  }
  return data;
}

async function flameSection(shell: Shell, chunks: Chunks, summary: Summary, views: TraceView[], known: What[]): Promise<OnWindow | undefined> {
  const start = known[0];
  if (!start) return undefined;
  const both = views.length === 2;
  const parts = summary.view["windows"] as unknown as { step_us: number; count: number } | undefined;
  const windows = parts && !both ? await loadWindows(chunks, parts.step_us, parts.count) : undefined;
  const unit = views[0]?.time_unit;
  const time = (value: number): string => (unit ? `${count(value)} ${unit}` : duration(value));
  let window: [number, number] | undefined;
  const command = (shown: Shown): string => {
    if (both) return `coffer diff ${shell.path(0)} ${shell.path(1)} --what ${shown} --flame flame.svg`;
    if (window && shown === WINDOW_KINDS[0]) return `coffer flame ${shell.path()} --what total --window ${window[0]}us..${window[1]}us -o flame.svg`;
    if (window && shown === WINDOW_KINDS[1]) return `coffer flame ${shell.path()} --at ${window[1]}us -o flame.svg`;
    return `coffer flame ${shell.path()} --what ${shown} -o flame.svg`;
  };
  const load = async (shown: Shown): Promise<FlameData> => {
    if (windows && window && isWindowKind(shown)) return windows.flame(window[0], window[1] - 1, shown === WINDOW_KINDS[0]);
    return loadFlame(chunks, isWindowKind(shown) ? start : shown);
  };
  const section = shell.section("flame", both ? "What changed, by stack" : "Flame graph", command(start));
  const details = el("div", { class: "details", "aria-live": "off" });
  const found = el("p", { class: "readout" });
  const about = el("p", { class: "quiet" });
  let what: Shown = start;
  let data = await load(what);
  const save = shell.remember("flame", (state) => {
    const wanted = known.find((item) => item === state["what"]) ?? start;
    void change(wanted, Number(state["frame"] ?? 0));
  });
  const keep = (frame: number): void => {
    if (!isWindowKind(what)) save(frame > 0 ? { what, frame: String(frame) } : { what });
  };
  const flame = new Flame(
    both ? "Differential flame graph" : "Flame graph",
    (frame) => describe(details, data, flame, frame),
    (frame) => keep(frame),
  );
  const search = (query: string): void => {
    const hits = flame.search(query);
    found.replaceChildren();
    if (query !== "") append(found, `${count(hits.frames)} frames match, ${bytes(hits.bytes)}, ${percent(hits.bytes, data.bytes[0] ?? 0)}`);
  };
  const change = async (next: Shown, frame = 0): Promise<void> => {
    what = next;
    data = await load(next);
    section.setCommand(command(next));
    choices.set(next);
    empty.hidden = data.parent.length > 1;
    about.replaceChildren();
    if (window && windows && isWindowKind(next))
      append(about, `${time(window[0])} to ${time(window[1])}: the window is rounded to intervals of ${time(windows.step)}.`);
    flame.show(data, frame);
    search(shell.query);
  };
  const empty = el("p", { class: "empty" }, "No bytes of this kind.");
  const options = known.map((value): { value: Shown; label: string; title: string } => ({ value, label: value, title: MEANING[value] }));
  if (windows) for (const value of WINDOW_KINDS) options.push({ value, label: value, title: "Drag in the timeline to choose a window" });
  const choices = choice<Shown>("Bytes to draw", options, what, (value) => void change(value).then(() => keep(0)));
  const showWindowKinds = (): void => WINDOW_KINDS.forEach((kind) => choices.hide(kind, window === undefined));
  const direction = choice(
    "Direction",
    [
      { value: "icicle", label: "icicle", title: "Callers above" },
      { value: "flame", label: "flame", title: "Callers below" },
    ],
    "icicle",
    (value) => flame.flip(value === "flame"),
  );
  append(section.controls, choices.element, direction.element);
  append(section.body, about, details, flame.element, empty, found);
  if (both) append(section.body, el("p", { class: "quiet" }, "Red frames grew, blue frames shrank; the width has room for both files."));
  if (windows) showWindowKinds();
  await change(what);
  shell.onSearch(search);
  shell.onEscape(() => flame.reset());
  if (!windows) return undefined;
  return (begin, end, whole) => {
    window = whole ? undefined : windows.round(begin, end);
    showWindowKinds();
    if (window && !isWindowKind(what)) void change(WINDOW_KINDS[0]);
    else if (isWindowKind(what)) void change(window ? what : start);
  };
}

function isWindowKind(shown: Shown): shown is (typeof WINDOW_KINDS)[number] {
  return (WINDOW_KINDS as readonly string[]).includes(shown);
}

/** The error of an estimate; nothing for exact numbers. */
function plusMinus(error: number): string {
  return error > 0 ? ` ± ${bytes(error)}` : "";
}

function describe(target: HTMLElement, data: FlameData, flame: Flame, frame: number): void {
  const all = data.bytes[0] ?? 0;
  const own = data.own[frame] ?? 0;
  const crumbs = flame.path(frame).slice(-6, -1);
  const line = el("p", { class: "crumbs" });
  crumbs.forEach((at) => append(line, name(data.name[at] ?? "", "crumb"), el("span", { "aria-hidden": "true" }, " › ")));
  const numbersLine = el("p", {});
  if (data.before && data.after) {
    const before = data.before[frame] ?? 0;
    const after = data.after[frame] ?? 0;
    append(numbersLine, el("strong", {}, signed(bytes(after - before), after - before)), ` · ${bytes(before)} → ${bytes(after)}`);
  } else {
    append(numbersLine, el("strong", {}, bytes(data.bytes[frame] ?? 0)), plusMinus(data.error?.[frame] ?? 0), ` · ${percent(data.bytes[frame] ?? 0, all)} · ${count(data.allocs[frame] ?? 0)} blocks`);
    if (own > 0) append(numbersLine, ` · ${bytes(own)} in this frame itself`);
  }
  target.replaceChildren(line, el("p", { class: "frame" }, name(data.name[frame] ?? ""), name(data.place[frame] ?? "", "place")), numbersLine);
}

// ---- Stacks ----

async function stackSection(shell: Shell, chunks: Chunks, view: TraceView, known: What[]): Promise<void> {
  const first = await chunks.u32("stacks.first");
  const rows = first.length - 1;
  if (rows <= 0) return;
  const section = shell.section("stacks", "Stacks", `coffer peak ${shell.path()}`);
  const texts = await chunks.texts();
  const frames = await chunks.u32("stacks.frames");
  const lifetime = await chunks.f64("stacks.lifetime_us");
  const growing = await chunks.u8("stacks.growing");
  const stack = (row: number): string[] => [...frames.subarray(first[row] ?? 0, first[row + 1] ?? 0)].map((at) => texts[at] ?? "");
  const lower = Array.from({ length: rows }, (_, row) => stack(row).join("\n").toLowerCase());
  const panel = el("div", { class: "stack-panel" }, el("p", { class: "quiet" }, "Choose a row to see its stack."));
  const columns = [
    { title: "allocated by", width: "minmax(13rem, 1fr)", text: (row: number) => stack(row)[0] ?? "unknown stack", render: (row: number) => name(stack(row)[0] ?? "unknown stack") },
  ] as ConstructorParameters<typeof VirtualTable>[0]["columns"];
  for (const what of known) {
    const values = await chunks.f64(`stacks.${what}.bytes`);
    columns.push({ title: what, width: "5.4rem", numeric: true, help: MEANING[what], value: (row) => values[row] ?? 0, text: (row) => (values[row] ? bytes(values[row] ?? 0) : "·") });
  }
  const blocks = await chunks.f64("stacks.total.allocs");
  columns.push({ title: "blocks", width: "4.6rem", numeric: true, value: (row) => blocks[row] ?? 0, text: (row) => count(blocks[row] ?? 0) });
  if (view.has_order)
    columns.push({ title: "mean life", width: "5.4rem", numeric: true, help: "Mean lifetime of the blocks that were freed", value: (row) => lifetime[row] ?? -1, text: (row) => ((lifetime[row] ?? -1) < 0 ? "·" : duration(lifetime[row] ?? 0)) });
  const stackTable = new VirtualTable({
    label: "Stacks",
    columns,
    rows,
    sortBy: 1,
    matches: (row, query) => lower[row]?.includes(query) ?? false,
    select: (row) => {
      const list = el("ol", { class: "frames" });
      for (const frame of stack(row)) append(list, el("li", {}, name(frame)));
      panel.replaceChildren(...(growing[row] && view.has_order ? [el("p", {}, el("span", { class: "chip warning" }, "keeps growing"))] : []), list);
    },
  });
  append(section.body, el("div", { class: "beside" }, stackTable.element, panel));
  stackTable.selectFirst();
  shell.onSearch((query) => stackTable.filter(query));
}

// ---- Phases and threads ----

const PART_UNITS: Record<string, string> = {
  "[].begin": "microseconds",
  "[].duration": "microseconds",
  "[].peak": "bytes",
  "[].leaks": "bytes",
  "[].live_at_end": "bytes",
  "[].allocated": "bytes",
};

function partSection(shell: Shell, summary: Summary): void {
  const phases = (summary.view["phases"] ?? []) as JsonMap[];
  const threads = (summary.view["threads"] ?? []) as JsonMap[];
  if (phases.length === 0 && threads.length === 0) return;
  const section = shell.section("parts", "Phases and threads", `coffer stats ${shell.path()}`);
  const row = el("div", { class: "charts" });
  for (const [title, rows] of [["Between markers", phases], ["By thread", threads]] as const)
    if (rows.length > 0) append(row, el("figure", { class: "chart" }, el("figcaption", {}, title), table(rows, "", PART_UNITS)));
  section.body.append(row);
}

// ---- Histograms ----

async function histogramSection(shell: Shell, chunks: Chunks, view: TraceView): Promise<void> {
  const section = shell.section("histograms", "Sizes and lifetimes", `coffer stats ${shell.path()}`);
  const sizes = await chunks.f64("sizes.count");
  const lifetimes = await chunks.f64("lifetimes.count");
  const row = el("div", { class: "charts" });
  append(row, histogram("Blocks by size", powers(sizes, bytes)));
  if (!view.time_unit) append(row, histogram("Freed blocks by lifetime", powers(lifetimes, duration)));
  section.body.append(row);
}

/** Buckets are [0], [1], [2, 4), [4, 8) …; empty ones at both ends are left out. */
function powers(values: Float64Array, format: (value: number) => string): { label: string; value: number; text: string; title: string }[] {
  const used = [...values.keys()].filter((at) => (values[at] ?? 0) > 0);
  const low = used[0] ?? 0;
  const high = used[used.length - 1] ?? -1;
  const bars = [];
  for (let at = low; at <= high; at++) {
    const from = at === 0 ? 0 : 2 ** (at - 1);
    const text = count(values[at] ?? 0);
    bars.push({ label: format(from), value: values[at] ?? 0, text, title: `${format(from)} to ${format(2 ** at)}: ${text} blocks` });
  }
  return bars;
}

