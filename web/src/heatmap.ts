/** A grid of numbers as colors: zoom with the wheel or + and −, pan by dragging, values under the pointer. */
import { append, button, canvas, color, el } from "./dom";
import { trim } from "./format";

export interface HeatData {
  width: number;
  height: number;
  /** Row by row; NaN for cells without a value. */
  cells: Float32Array | Float64Array;
  /** The names of a cell for the readout. */
  describe: (column: number, row: number) => string;
}

type Rgb = readonly [number, number, number];
const VIRIDIS: readonly Rgb[] = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const DIVERGING: readonly Rgb[] = [[49, 91, 163], [107, 153, 205], [176, 203, 229], [242, 242, 240], [240, 190, 167], [217, 120, 95], [165, 42, 49]];
const ZOOM_STEP = 1.6;

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
  private view = { x: 0, y: 0, width: 1, height: 1 };
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
      const [column, row] = this.cellAt(event.offsetX, event.offsetY);
      this.point(column, row);
      this.onChoose(column, row);
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
    [this.low, this.high] = extremes(data.cells);
    this.diverges = this.low < 0 && this.high > 0;
    if (this.diverges) {
      const reach = Math.max(-this.low, this.high);
      this.low = -reach;
      this.high = reach;
    }
    this.image = this.makeImage(data);
    this.view = { x: 0, y: 0, width: data.width, height: data.height };
    const aspect = this.keepAspect ? data.height / data.width : 0;
    this.drawing.element.style.aspectRatio = aspect > 0 ? `${data.width} / ${data.height}` : "";
    this.drawing.element.classList.toggle("square", aspect > 0);
    this.makeLegend();
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
    this.drawing.redraw();
    return true;
  }

  private makeImage(data: HeatData): HTMLCanvasElement {
    const image = document.createElement("canvas");
    paint(image, data.width, data.height, data.cells, this.diverges ? DIVERGING : VIRIDIS, this.low, this.high);
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
    const column = Math.floor(this.view.x + (x / clientWidth) * this.view.width);
    const row = Math.floor(this.view.y + (y / clientHeight) * this.view.height);
    return [column, row];
  }

  private point(column: number, row: number): void {
    const { data } = this;
    if (!data) return;
    const x = Math.min(Math.max(column, 0), data.width - 1);
    const y = Math.min(Math.max(row, 0), data.height - 1);
    this.cursor = [x, y];
    const value = data.cells[y * data.width + x] ?? NaN;
    this.readout.replaceChildren();
    append(this.readout, el("strong", {}, Number.isNaN(value) ? "no value" : trim(value, 7)), ` · ${data.describe(x, y)}`);
    this.drawing.redraw();
  }

  private zoom(factor: number, atX = 0.5, atY = 0.5): void {
    const { data } = this;
    if (!data) return;
    const width = Math.min(data.width, Math.max(4, this.view.width / factor));
    const height = Math.min(data.height, Math.max(4, this.view.height / factor));
    this.move(this.view.x + (this.view.width - width) * atX, this.view.y + (this.view.height - height) * atY, width, height);
  }

  private move(x: number, y: number, width = this.view.width, height = this.view.height): void {
    const { data } = this;
    if (!data) return;
    this.view = { x: Math.min(Math.max(x, 0), data.width - width), y: Math.min(Math.max(y, 0), data.height - height), width, height };
    this.drawing.redraw();
  }

  private onWheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.shiftKey && !this.zoomed()) return;
    event.preventDefault();
    const { clientWidth, clientHeight } = this.drawing.element;
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX / clientWidth, event.offsetY / clientHeight);
  }

  private zoomed(): boolean {
    return this.data !== undefined && this.view.width < this.data.width;
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
    const [x, y] = this.cursor;
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (step) this.point(x + step[0], y + step[1]);
    else if (event.key === "+") this.zoom(ZOOM_STEP);
    else if (event.key === "-") this.zoom(1 / ZOOM_STEP);
    else if (event.key === "Enter") this.onChoose(x, y);
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
    context.strokeStyle = color("--ink");
    context.lineWidth = 1.5;
    context.strokeRect((this.cursor[0] - x) * cellWidth, (this.cursor[1] - y) * cellHeight, Math.max(cellWidth, 3), Math.max(cellHeight, 3));
  }
}
