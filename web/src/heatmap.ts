/** A grid of numbers as colors: zoom with the wheel or + and −, pan by dragging, values under the pointer. */
import { append, button, canvas, color, el } from "./dom";
import { trim } from "./format";
import { Newest } from "./live";

export interface HeatData {
  width: number;
  height: number;
  /** Row by row; NaN for cells without a value. */
  cells: Float32Array | Float64Array;
  /** The names of a cell for the readout. */
  describe: (column: number, row: number) => string;
  /** Asks for a part at a finer resolution. The result has at most `columns` × `rows` cells. */
  finer?: (part: Part, columns: number, rows: number, signal: AbortSignal) => Promise<Patch>;
  /** The values that a cell covers across and down: how far one can zoom in. */
  across?: number;
  down?: number;
}

/** A rectangle in cells of the grid. */
export interface Part {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Finer cells of a part of the grid. */
export interface Patch extends Part {
  columns: number;
  rows: number;
  cells: Float64Array;
  describe: (column: number, row: number) => string;
}

type Rgb = readonly [number, number, number];
const VIRIDIS: readonly Rgb[] = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const DIVERGING: readonly Rgb[] = [[49, 91, 163], [107, 153, 205], [176, 203, 229], [242, 242, 240], [240, 190, 167], [217, 120, 95], [165, 42, 49]];
const ZOOM_STEP = 1.6;
/** The least cells in view, and how long the view rests before a finer part is asked for. */
const LEAST_CELLS = 4;
const REST_MS = 120;

function sample(map: readonly Rgb[], share: number): Rgb {
  const place = Math.min(Math.max(share, 0), 1) * (map.length - 1);
  const index = Math.min(Math.floor(place), map.length - 2);
  const low = map[index] as Rgb;
  const high = map[index + 1] as Rgb;
  const part = place - index;
  return [low[0] + (high[0] - low[0]) * part, low[1] + (high[1] - low[1]) * part, low[2] + (high[2] - low[2]) * part];
}

/** Colors cells on a canvas of their size. low, high : the ends of the scale. */
function paint(target: HTMLCanvasElement, width: number, height: number, cells: HeatData["cells"], map: readonly Rgb[], low: number, high: number): void {
  target.width = width;
  target.height = height;
  const context = target.getContext("2d");
  const pixels = context?.createImageData(width, height);
  if (!context || !pixels) return;
  const range = high - low || 1;
  cells.forEach((value, index) => {
    if (Number.isNaN(value)) return;
    const [red, green, blue] = sample(map, high > low ? (value - low) / range : 0.5);
    pixels.data.set([red, green, blue, 255], 4 * index);
  });
  context.putImageData(pixels, 0, 0);
}

/** A grid without a scale of its own to read: from its smallest to its largest value. */
export function paintCells(target: HTMLCanvasElement, width: number, height: number, cells: HeatData["cells"]): void {
  const [low, high] = extremes(cells);
  paint(target, width, height, cells, VIRIDIS, low, high);
}

function extremes(cells: HeatData["cells"]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of cells)
    if (Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  return [low, high];
}

export class HeatMap {
  readonly element: HTMLElement;
  readonly controls: HTMLElement;
  private readonly drawing;
  private readonly readout = el("p", { class: "readout" });
  private readonly legend = el("div", { class: "legend" });
  private data: HeatData | undefined;
  private image: HTMLCanvasElement | undefined;
  private low = 0;
  private high = 1;
  private diverges = false;
  private view: Part = { x: 0, y: 0, width: 1, height: 1 };
  private patch: Patch | undefined;
  private patchImage: HTMLCanvasElement | undefined;
  private readonly newest = new Newest();
  private resting = 0;
  private cursor: [number, number] = [0, 0];
  private drag: [number, number] | undefined;

  constructor(
    label: string,
    private readonly keepAspect: boolean,
    private readonly onChoose: (column: number, row: number) => void = () => undefined,
  ) {
    this.drawing = canvas(label, (context, width, height) => this.draw(context, width, height));
    const target = this.drawing.element;
    const frame = el("div", { class: "heat", tabindex: 0, role: "application", "aria-label": `${label}. Arrow keys move, plus and minus zoom.` }, target);
    frame.addEventListener("keydown", (event) => this.onKey(event));
    target.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    target.addEventListener("pointerdown", (event) => {
      this.drag = [event.offsetX, event.offsetY];
      target.setPointerCapture(event.pointerId);
    });
    target.addEventListener("pointerup", () => (this.drag = undefined));
    target.addEventListener("pointermove", (event) => this.onMove(event));
    target.addEventListener("click", (event) => {
      this.point(...this.cellAt(event.offsetX, event.offsetY));
      this.choose();
    });
    this.controls = el(
      "div",
      { class: "choice", role: "group", "aria-label": "Zoom" },
      button("−", "Zoom out (−)", () => this.zoom(1 / ZOOM_STEP)),
      button("whole", "Show everything (Esc)", () => this.reset()),
      button("+", "Zoom in (+)", () => this.zoom(ZOOM_STEP)),
    );
    this.element = el("div", { class: "heat-frame" }, frame, this.readout, this.legend);
  }

  show(data: HeatData): void {
    this.data = data;
    this.dropPatch();
    this.view = { x: 0, y: 0, width: data.width, height: data.height };
    const aspect = this.keepAspect ? data.height / data.width : 0;
    this.drawing.element.style.aspectRatio = aspect > 0 ? `${data.width} / ${data.height}` : "";
    this.drawing.element.classList.toggle("square", aspect > 0);
    this.point(0, 0);
    this.drawing.redraw();
  }

  /** Moves the cursor to a cell. */
  moveTo(column: number, row: number): void {
    this.point(column, row);
  }

  /** Whether it was zoomed in. */
  reset(): boolean {
    const { data } = this;
    if (!data || (this.view.width >= data.width && this.view.height >= data.height)) return false;
    this.view = { x: 0, y: 0, width: data.width, height: data.height };
    this.dropPatch();
    this.drawing.redraw();
    return true;
  }

  /** Colors everything by the cells in sight: means of many values are closer together than the values. */
  private scaleTo(cells: HeatData["cells"]): void {
    const { data, patch } = this;
    if (!data) return;
    [this.low, this.high] = extremes(cells);
    this.diverges = this.low < 0 && this.high > 0;
    if (this.diverges) {
      const reach = Math.max(-this.low, this.high);
      this.low = -reach;
      this.high = reach;
    }
    this.image = this.makeImage(data.width, data.height, data.cells);
    this.patchImage = patch && this.makeImage(patch.columns, patch.rows, patch.cells);
    this.makeLegend();
  }

  private dropPatch(): void {
    window.clearTimeout(this.resting);
    this.newest.cancel();
    this.patch = undefined;
    if (this.data) this.scaleTo(this.data.cells);
  }

  /** When the view has come to rest. */
  private refine(): void {
    const { data } = this;
    window.clearTimeout(this.resting);
    if (!data?.finer || ((data.across ?? 1) <= 1 && (data.down ?? 1) <= 1)) return;
    if (!this.zoomed()) {
      this.dropPatch();
      return;
    }
    this.resting = window.setTimeout(() => void this.askFiner(data), REST_MS);
  }

  private async askFiner(data: HeatData): Promise<void> {
    const { clientWidth, clientHeight } = this.drawing.element;
    const most = 512;
    try {
      const patch = await this.newest.run(async (signal) => data.finer?.(this.view, Math.min(Math.max(clientWidth, 1), most), Math.min(Math.max(clientHeight, 1), most), signal));
      if (!patch || data !== this.data) return;
      this.patch = patch;
      this.scaleTo(patch.cells);
      this.point(...this.cursor);
      this.element.dataset["cells"] = `${patch.columns} × ${patch.rows}`;
    } catch (problem) {
      append(this.readout, ` · ${String(problem)}`);
    }
  }

  private makeImage(width: number, height: number, cells: HeatData["cells"]): HTMLCanvasElement {
    const image = document.createElement("canvas");
    paint(image, width, height, cells, this.diverges ? DIVERGING : VIRIDIS, this.low, this.high);
    return image;
  }

  private makeLegend(): void {
    const map = this.diverges ? DIVERGING : VIRIDIS;
    const bar = el("span", { class: "legend-bar", "aria-hidden": "true" });
    bar.style.background = `linear-gradient(to right, ${map.map((rgb) => `rgb(${rgb.map(Math.round).join(" ")})`).join(", ")})`;
    this.legend.replaceChildren();
    if (!Number.isFinite(this.low)) append(this.legend, el("span", {}, "no values"));
    else append(this.legend, el("span", {}, trim(this.low, 4)), bar, el("span", {}, trim(this.high, 4)), el("span", { class: "quiet" }, "empty cells have no color"));
  }

  private cellAt(x: number, y: number): [number, number] {
    const { clientWidth, clientHeight } = this.drawing.element;
    return [this.view.x + (x / clientWidth) * this.view.width, this.view.y + (y / clientHeight) * this.view.height];
  }

  /** The cell of the grid, or of the finer part, at a place. */
  private cellOf([x, y]: [number, number]): { box: Part; value: number; text: string } | undefined {
    const { data, patch } = this;
    if (!data) return undefined;
    const inside = patch && x >= patch.x && y >= patch.y && x < patch.x + patch.width && y < patch.y + patch.height;
    const from = inside
      ? { x: patch.x, y: patch.y, width: patch.width / patch.columns, height: patch.height / patch.rows, columns: patch.columns, rows: patch.rows, cells: patch.cells, describe: patch.describe }
      : { x: 0, y: 0, width: 1, height: 1, columns: data.width, rows: data.height, cells: data.cells, describe: data.describe };
    const column = Math.min(Math.max(Math.floor((x - from.x) / from.width), 0), from.columns - 1);
    const row = Math.min(Math.max(Math.floor((y - from.y) / from.height), 0), from.rows - 1);
    return {
      box: { x: from.x + column * from.width, y: from.y + row * from.height, width: from.width, height: from.height },
      value: from.cells[row * from.columns + column] ?? NaN,
      text: from.describe(column, row),
    };
  }

  private point(x: number, y: number): void {
    const { data } = this;
    if (!data) return;
    this.cursor = [Math.min(Math.max(x, 0), data.width - 1e-9), Math.min(Math.max(y, 0), data.height - 1e-9)];
    const cell = this.cellOf(this.cursor);
    if (!cell) return;
    this.readout.replaceChildren();
    append(this.readout, el("strong", {}, Number.isNaN(cell.value) ? "no value" : trim(cell.value, this.patch ? 17 : 7)), ` · ${cell.text}`);
    this.drawing.redraw();
  }

  private zoom(factor: number, atX = 0.5, atY = 0.5): void {
    const { data } = this;
    if (!data) return;
    const width = Math.min(data.width, Math.max(LEAST_CELLS / Math.max(data.across ?? 1, 1), this.view.width / factor));
    const height = Math.min(data.height, Math.max(LEAST_CELLS / Math.max(data.down ?? 1, 1), this.view.height / factor));
    this.move(this.view.x + (this.view.width - width) * atX, this.view.y + (this.view.height - height) * atY, width, height);
  }

  /** Keeps the cursor in view. */
  private follow(): void {
    const { x, y, width, height } = this.view;
    const [column, row] = this.cursor;
    const nextX = Math.min(Math.max(x, column - width * 0.9), column - width * 0.1);
    const nextY = Math.min(Math.max(y, row - height * 0.9), row - height * 0.1);
    if (column < x || column > x + width || row < y || row > y + height) this.move(nextX, nextY);
  }

  private zoomAtCursor(factor: number): void {
    const atX = (this.cursor[0] - this.view.x) / this.view.width;
    const atY = (this.cursor[1] - this.view.y) / this.view.height;
    const inside = atX >= 0 && atX <= 1 && atY >= 0 && atY <= 1;
    this.zoom(factor, inside ? atX : 0.5, inside ? atY : 0.5);
  }

  private move(x: number, y: number, width = this.view.width, height = this.view.height): void {
    const { data } = this;
    if (!data) return;
    this.view = { x: Math.min(Math.max(x, 0), data.width - width), y: Math.min(Math.max(y, 0), data.height - height), width, height };
    this.refine();
    this.drawing.redraw();
  }

  private choose(): void {
    this.onChoose(Math.floor(this.cursor[0]), Math.floor(this.cursor[1]));
  }

  private onWheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.shiftKey && !this.zoomed()) return;
    event.preventDefault();
    const { clientWidth, clientHeight } = this.drawing.element;
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX / clientWidth, event.offsetY / clientHeight);
  }

  private zoomed(): boolean {
    return this.data !== undefined && (this.view.width < this.data.width || this.view.height < this.data.height);
  }

  private onMove(event: PointerEvent): void {
    if (this.drag && this.zoomed()) {
      const { clientWidth, clientHeight } = this.drawing.element;
      const x = this.view.x - ((event.offsetX - this.drag[0]) / clientWidth) * this.view.width;
      const y = this.view.y - ((event.offsetY - this.drag[1]) / clientHeight) * this.view.height;
      this.drag = [event.offsetX, event.offsetY];
      this.move(x, y);
    } else {
      this.point(...this.cellAt(event.offsetX, event.offsetY));
    }
  }

  private onKey(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    const box = this.cellOf(this.cursor)?.box;
    if (step && box) {
      this.point(box.x + box.width * (step[0] + 0.5), box.y + box.height * (step[1] + 0.5));
      this.follow();
    }
    else if (event.key === "+") this.zoomAtCursor(ZOOM_STEP);
    else if (event.key === "-") this.zoomAtCursor(1 / ZOOM_STEP);
    else if (event.key === "Enter") this.choose();
    else return;
    event.preventDefault();
  }

  private draw(context: CanvasRenderingContext2D, width: number, height: number): void {
    if (!this.image) return;
    const { x, y, width: across, height: down } = this.view;
    context.imageSmoothingEnabled = across > width * 1.5;
    context.drawImage(this.image, x, y, across, down, 0, 0, width, height);
    const cellWidth = width / across;
    const cellHeight = height / down;
    const { patch } = this;
    context.imageSmoothingEnabled = false;
    if (patch && this.patchImage) context.drawImage(this.patchImage, 0, 0, patch.columns, patch.rows, (patch.x - x) * cellWidth, (patch.y - y) * cellHeight, patch.width * cellWidth, patch.height * cellHeight);
    context.strokeStyle = color("--ink");
    context.lineWidth = 1.5;
    const box = this.cellOf(this.cursor)?.box;
    if (box) context.strokeRect((box.x - x) * cellWidth, (box.y - y) * cellHeight, Math.max(box.width * cellWidth, 3), Math.max(box.height * cellHeight, 3));
  }
}
