/** Memory over time, with zoom by dragging and a readout of the window in view. */
import uPlot from "uplot";
import { append, button, choice, color, el } from "./dom";
import { bytes, count, duration } from "./format";
import { Newest } from "./live";

export interface TimelineData {
  time: Float64Array;
  live_bytes: Float64Array;
  high_bytes: Float64Array;
  live_allocs: Float64Array;
  allocated_bytes: Float64Array;
  allocs: Float64Array;
  mark_time: Float64Array;
  mark_label: string[];
  mark_type: Uint8Array;
  begin: number;
  end: number;
  /** "instructions" and the like; null: microseconds. */
  unit: string | null;
}

export type Measure = "bytes" | "blocks" | "rate";

const MARKER = 3;
const HEIGHT = 240;
/** How long the window rests before a finer part is asked for. */
const REST_MS = 120;
/** Steps of an axis in bytes. */
const POWERS = Array.from({ length: 52 }, (_, power) => 2 ** power);

export class Timeline {
  readonly element = el("div", { class: "timeline" });
  readonly controls: HTMLElement;
  private readonly host = el("div", { class: "plot", role: "img", "aria-label": "Memory over time. The numbers are in the table below." });
  private readonly readout = el("p", { class: "readout" });
  private readonly reset: HTMLButtonElement;
  private readonly newest = new Newest();
  private resting = 0;
  private data: TimelineData;
  private plot: uPlot | undefined;
  private measure: Measure = "bytes";
  private window: [number, number];

  constructor(
    private readonly wholeData: TimelineData,
    private readonly onWindow: (begin: number, end: number, whole: boolean) => void,
    /** Asks for a part at a finer resolution. */
    private readonly finer?: (begin: number, end: number, width: number, signal: AbortSignal) => Promise<TimelineData>,
  ) {
    this.data = wholeData;
    this.window = [wholeData.begin, wholeData.end];
    this.reset = button("whole run", "Show the whole run (Esc)", () => this.zoomOut());
    const measures = choice<Measure>(
      "What to draw",
      [
        { value: "bytes", label: "live bytes" },
        { value: "blocks", label: "live blocks" },
        { value: "rate", label: "allocation rate" },
      ],
      "bytes",
      (value) => {
        this.measure = value;
        this.draw();
      },
    );
    this.controls = el("div", { class: "controls" }, measures.element, this.reset);
    append(this.element, this.host, this.readout, this.asTable());
    new ResizeObserver(() => {
      const width = this.host.clientWidth;
      if (width > 0) this.plot?.setSize({ width, height: HEIGHT });
    }).observe(this.host);
    document.addEventListener("coffer-theme", () => this.draw());
  }

  start(): void {
    this.draw();
    this.report();
  }

  /** Whether it was zoomed in. */
  zoomOut(): boolean {
    const whole = this.isWhole();
    this.zoomTo(this.wholeData.begin, this.wholeData.end);
    return !whole;
  }

  zoomTo(begin: number, end: number): void {
    if (!(end > begin)) return;
    this.window = [begin, end];
    this.plot?.setScale("x", { min: begin, max: end });
    this.report();
    this.refine();
  }

  private show(data: TimelineData): void {
    if (data === this.data) return;
    this.data = data;
    this.draw();
    this.tell();
  }

  /** When the window has come to rest. */
  private refine(): void {
    const { finer } = this;
    window.clearTimeout(this.resting);
    this.newest.cancel();
    if (!finer) return;
    const [begin, end] = this.window;
    if (this.isWhole()) this.show(this.wholeData);
    else
      this.resting = window.setTimeout(() => {
        append(this.readout, el("span", { class: "quiet" }, " Reading this part…"));
        const width = Math.min(2048, Math.max(256, this.host.clientWidth));
        this.newest
          .run((signal) => finer(Math.max(0, begin), end, width, signal))
          .then((part) => part && this.show(part))
          .catch((problem: unknown) => append(this.readout, String(problem)));
      }, REST_MS);
  }

  private isWhole(): boolean {
    return this.window[0] <= this.wholeData.begin && this.window[1] >= this.wholeData.end;
  }

  private time(value: number): string {
    return this.data.unit ? `${count(value)} ${this.data.unit}` : duration(value);
  }

  private amount(value: number): string {
    return this.measure === "blocks" ? count(value) : bytes(value);
  }

  private columns(): { values: (number | null)[][]; labels: string[] } {
    const { data } = this;
    if (this.measure === "blocks") return { values: [[...data.live_allocs]], labels: ["live blocks"] };
    if (this.measure === "rate") return { values: [[...data.allocated_bytes]], labels: ["allocated in this interval"] };
    return { values: [[...data.high_bytes], [...data.live_bytes]], labels: ["highest", "at the end of the interval"] };
  }

  private draw(): void {
    this.plot?.destroy();
    this.host.replaceChildren();
    const { values, labels } = this.columns();
    const accent = color("--accent");
    const quiet = color("--quiet");
    const axis = { stroke: quiet, grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: `11px ${color("--sans")}` };
    const series: uPlot.Series[] = [{ label: "time", value: (_, value) => (value == null ? "—" : this.time(value)) }];
    labels.forEach((label, index) =>
      series.push({
        label,
        stroke: index === 0 ? accent : quiet,
        width: index === 0 ? 1.5 : 1,
        ...(index === 0 ? { fill: color("--accent-soft") } : {}),
        points: { show: false },
        value: (_, value) => (value == null ? "—" : this.amount(value)),
      }),
    );
    const options: uPlot.Options = {
      width: Math.max(this.host.clientWidth, 200),
      height: HEIGHT,
      series,
      scales: { x: { time: false, min: this.window[0], max: this.window[1] }, y: { range: (_, __, high) => [0, high > 0 ? high * 1.06 : 1] } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => this.time(tick)), space: this.data.unit ? 160 : 90 },
        { ...axis, values: (_, ticks) => ticks.map((tick) => this.amount(tick)), size: 72, ...(this.measure === "blocks" ? {} : { incrs: POWERS }) },
      ],
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      legend: { live: true },
      hooks: {
        setSelect: [
          (plot) => {
            if (plot.select.width > 2) this.zoomTo(plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x"));
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          },
        ],
        draw: [(plot) => this.drawMarks(plot)],
      },
    };
    this.plot = new uPlot(options, [[...this.data.time], ...values] as uPlot.AlignedData, this.host);
  }

  private drawMarks(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const ratio = window.devicePixelRatio || 1;
    ctx.save();
    ctx.font = `${10 * ratio}px ${color("--sans")}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    let textEnd = -1;
    this.data.mark_time.forEach((time, index) => {
      const x = plot.valToPos(time, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      const marker = this.data.mark_type[index] === MARKER;
      ctx.strokeStyle = color(marker ? "--mark" : "--line");
      ctx.lineWidth = ratio;
      ctx.setLineDash(marker ? [] : [3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const label = (this.data.mark_label[index] ?? "").slice(0, 40);
      if (marker && x > textEnd) {
        ctx.fillStyle = color("--mark");
        ctx.fillText(label, x + 3 * ratio, bbox.top + 11 * ratio);
        textEnd = x + ctx.measureText(label).width + 12 * ratio;
      }
    });
    ctx.restore();
  }

  private report(): void {
    this.tell();
    this.onWindow(...this.window, this.isWhole());
  }

  private tell(): void {
    const [begin, end] = this.window;
    let highest = 0;
    let allocated = 0;
    let allocs = 0;
    this.data.time.forEach((time, index) => {
      if (time < begin || time > end) return;
      highest = Math.max(highest, this.data.high_bytes[index] ?? 0);
      allocated += this.data.allocated_bytes[index] ?? 0;
      allocs += this.data.allocs[index] ?? 0;
    });
    const whole = this.isWhole();
    this.readout.replaceChildren();
    append(
      this.readout,
      whole ? "Whole run" : `${this.time(Math.max(begin, 0))} to ${this.time(end)}`,
      ": highest ",
      el("strong", {}, bytes(highest)),
      ...(allocs > 0 ? [", allocated ", el("strong", {}, bytes(allocated)), ` in ${count(allocs)} blocks`] : []),
      ". ",
      el("span", { class: "quiet" }, "Drag in the plot to zoom."),
    );
    this.reset.disabled = whole;
  }

  private asTable(): HTMLElement {
    const details = el("details", { class: "as-table" }, el("summary", {}, "as a table"));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      const body = el("tbody");
      const step = Math.max(1, Math.ceil(this.data.time.length / 128));
      for (let i = 0; i < this.data.time.length; i += step) {
        let high = 0;
        for (let j = i; j < Math.min(i + step, this.data.time.length); j++) high = Math.max(high, this.data.high_bytes[j] ?? 0);
        append(body, el("tr", {}, el("td", {}, this.time(this.data.time[i] ?? 0)), el("td", { class: "number" }, bytes(high)), el("td", { class: "number" }, count(this.data.live_allocs[i] ?? 0))));
      }
      const head = el("tr", {}, el("th", {}, "time"), el("th", {}, "highest bytes"), el("th", {}, "live blocks"));
      append(details, el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "timeline as a table" }, el("table", {}, el("thead", {}, head), body)));
      if (step > 1) append(details, el("p", { class: "quiet" }, `A row for every ${step} intervals.`));
    });
    return details;
  }
}
