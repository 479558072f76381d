/** A flame graph on a canvas: zoom, search, keyboard. Frames are columns in depth-first order. */
import { canvas, color, el } from "./dom";
import { plain } from "./format";

export interface FlameData {
  parent: Uint32Array;
  name: string[];
  place: string[];
  bytes: Float64Array;
  own: Float64Array;
  allocs: Float64Array;
  /** Of a sampled trace: how far `bytes` may be from the truth. */
  error?: Float64Array;
  /** Of a comparison. */
  before?: Float64Array;
  after?: Float64Array;
}

const ROW = 19;
const NARROWEST = 0.6;
const NONE = 0xffffffff;
const HUES = [28, 205, 150, 265, 340, 50, 185, 310];

export class Flame {
  readonly element: HTMLElement;
  private readonly drawing;
  private readonly spacer = el("div", { class: "flame-spacer" });
  private data: FlameData | undefined;
  private start = new Float64Array(0);
  private depth = new Uint32Array(0);
  private end = new Uint32Array(0);
  private hue = new Uint16Array(0);
  private matched = new Uint8Array(0);
  private query = "";
  private deepest = 0;
  private zoom = 0;
  private pointed = 0;
  private flipped = false;

  constructor(
    private readonly label: string,
    private readonly onPoint: (frame: number) => void,
    private readonly onZoom: (frame: number) => void,
  ) {
    this.drawing = canvas(label, (context, width, height) => this.draw(context, width, height));
    this.element = el("div", { class: "flame", tabindex: 0, role: "application", "aria-label": `${label}. Arrow keys move, Enter zooms, Escape zooms out.` }, this.drawing.element, this.spacer);
    this.element.addEventListener("scroll", () => this.drawing.redraw());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    const target = this.drawing.element;
    target.addEventListener("mousemove", (event) => {
      const frame = this.frameAt(event.offsetX, event.offsetY);
      if (frame !== undefined) this.point(frame);
    });
    target.addEventListener("click", (event) => {
      const frame = this.frameAt(event.offsetX, event.offsetY);
      if (frame !== undefined) this.zoomTo(frame === this.zoom && frame !== 0 ? this.parentOf(frame) : frame);
    });
  }

  show(data: FlameData, zoom = 0): void {
    const count = data.parent.length;
    this.data = data;
    this.start = new Float64Array(count);
    this.depth = new Uint32Array(count);
    this.end = new Uint32Array(count);
    this.hue = new Uint16Array(count);
    this.matched = new Uint8Array(count);
    const used = new Float64Array(count);
    this.deepest = 0;
    for (let i = 0; i < count; i++) {
      const parent = data.parent[i] ?? NONE;
      if (parent !== NONE) {
        this.start[i] = (this.start[parent] ?? 0) + (used[parent] ?? 0);
        used[parent] = (used[parent] ?? 0) + (data.bytes[i] ?? 0);
        this.depth[i] = (this.depth[parent] ?? 0) + 1;
      }
      this.hue[i] = hueOf(fileOf(data.place[i] ?? "") || (data.name[i] ?? ""));
      this.deepest = Math.max(this.deepest, this.depth[i] ?? 0);
    }
    for (let i = count - 1; i >= 0; i--) {
      this.end[i] = Math.max(this.end[i] ?? 0, i + 1);
      const parent = data.parent[i] ?? NONE;
      if (parent !== NONE) this.end[parent] = Math.max(this.end[parent] ?? 0, this.end[i] ?? 0);
    }
    this.spacer.style.height = `${(this.deepest + 1) * ROW}px`;
    this.element.style.setProperty("--rows", String(Math.min(this.deepest + 1, 28)));
    this.drawing.element.setAttribute("aria-label", `${this.label}: ${count} frames`);
    this.zoom = zoom < count ? zoom : 0;
    this.search(this.query);
    this.point(this.zoom);
    this.element.scrollTop = this.flipped ? this.element.scrollHeight : 0;
  }

  /** Highlights frames whose name or place contains the text; returns their number and bytes. */
  search(query: string): { frames: number; bytes: number } {
    const data = this.data;
    this.query = query;
    let frames = 0;
    let bytes = 0;
    let coveredTo = 0;
    for (let i = 0; data && i < this.matched.length; i++) {
      const hit = query !== "" && `${data.name[i]} ${data.place[i]}`.toLowerCase().includes(query);
      this.matched[i] = hit ? 1 : 0;
      if (!hit) continue;
      frames++;
      /* Frames below a match are part of it. */
      if (i >= coveredTo) {
        bytes += data.bytes[i] ?? 0;
        coveredTo = this.end[i] ?? 0;
      }
    }
    this.drawing.redraw();
    return { frames, bytes };
  }

  /** With the outermost frame at the bottom. */
  flip(flipped: boolean): void {
    this.flipped = flipped;
    this.element.scrollTop = flipped ? this.element.scrollHeight : 0;
    this.drawing.redraw();
  }

  private line(depth: number): number {
    return this.flipped ? this.deepest - depth : depth;
  }

  zoomTo(frame: number): void {
    if (frame === this.zoom) return;
    this.zoom = frame;
    this.point(frame);
    this.onZoom(frame);
    this.drawing.redraw();
  }

  /** Whether it was zoomed in. */
  reset(): boolean {
    if (this.zoom === 0) return false;
    this.zoomTo(0);
    return true;
  }

  /** The frame and its callers, outermost first. */
  path(frame: number): number[] {
    const frames: number[] = [];
    for (let at = frame; at !== NONE; at = this.data?.parent[at] ?? NONE) frames.unshift(at);
    return frames;
  }

  private point(frame: number): void {
    this.pointed = frame;
    this.onPoint(frame);
    this.drawing.redraw();
  }

  private parentOf(frame: number): number {
    const parent = this.data?.parent[frame] ?? NONE;
    return parent === NONE ? 0 : parent;
  }

  private children(frame: number): number[] {
    const list: number[] = [];
    for (let i = frame + 1; i < (this.end[frame] ?? 0); i = this.end[i] ?? i + 1) list.push(i);
    return list;
  }

  private frameAt(x: number, y: number): number | undefined {
    const data = this.data;
    if (!data) return undefined;
    const depth = this.line(Math.floor((y + this.element.scrollTop) / ROW));
    const path = this.path(this.zoom);
    if (depth >= 0 && depth < path.length) return path[depth];
    const scale = (data.bytes[this.zoom] ?? 1) / this.drawing.element.clientWidth;
    const at = (this.start[this.zoom] ?? 0) + x * scale;
    for (let i = this.zoom; i < (this.end[this.zoom] ?? 0); ) {
      const inside = at >= (this.start[i] ?? 0) && at < (this.start[i] ?? 0) + (data.bytes[i] ?? 0);
      if (inside && this.depth[i] === depth) return i;
      i = inside ? i + 1 : (this.end[i] ?? i + 1);
    }
    return undefined;
  }

  private onKey(event: KeyboardEvent): void {
    const siblings = this.pointed === 0 ? [0] : this.children(this.parentOf(this.pointed));
    const at = siblings.indexOf(this.pointed);
    let next: number | undefined;
    if (event.key === (this.flipped ? "ArrowDown" : "ArrowUp")) next = this.parentOf(this.pointed);
    else if (event.key === (this.flipped ? "ArrowUp" : "ArrowDown")) next = this.children(this.pointed)[0];
    else if (event.key === "ArrowLeft") next = siblings[at - 1];
    else if (event.key === "ArrowRight") next = siblings[at + 1];
    else if (event.key === "Enter") return this.zoomTo(this.pointed);
    else return;
    event.preventDefault();
    if (next === undefined) return;
    this.point(next);
    const top = this.line(this.depth[next] ?? 0) * ROW;
    if (top < this.element.scrollTop || top > this.element.scrollTop + this.element.clientHeight - ROW)
      this.element.scrollTop = top - this.element.clientHeight / 2;
  }

  private fill(frame: number, dark: boolean): string {
    const data = this.data;
    if (data?.before && data.after) {
      const change = (data.after[frame] ?? 0) - (data.before[frame] ?? 0);
      const base = Math.max(data.after[frame] ?? 0, data.before[frame] ?? 0, 1);
      const strength = Math.min(1, Math.abs(change) / base);
      if (strength < 0.005) return dark ? "hsl(220 6% 32%)" : "hsl(220 10% 88%)";
      const hue = change > 0 ? 12 : 212;
      return dark ? `hsl(${hue} ${25 + 45 * strength}% ${30 + 8 * strength}%)` : `hsl(${hue} ${45 + 40 * strength}% ${90 - 22 * strength}%)`;
    }
    if (frame === 0) return dark ? "hsl(220 6% 28%)" : "hsl(220 10% 90%)";
    const hue = HUES[(this.hue[frame] ?? 0) % HUES.length] ?? 28;
    const shade = ((this.hue[frame] ?? 0) >> 3) % 5;
    return dark ? `hsl(${hue} 26% ${29 + 2 * shade}%)` : `hsl(${hue} 48% ${86 - 2 * shade}%)`;
  }

  private draw(context: CanvasRenderingContext2D, width: number, height: number): void {
    const data = this.data;
    if (!data || data.parent.length === 0) return;
    const dark = color("--is-dark") === "1";
    const scroll = this.element.scrollTop;
    const scale = width / Math.max(data.bytes[this.zoom] ?? 1, 1);
    const origin = this.start[this.zoom] ?? 0;
    const ink = color("--ink");
    context.font = `12px ${color("--sans")}`;
    context.textBaseline = "middle";
    const paint = (frame: number, x: number, wide: number): void => {
      const y = this.line(this.depth[frame] ?? 0) * ROW - scroll;
      if (y < -ROW || y > height) return;
      const faded = (this.query !== "" && this.matched[frame] === 0) || frame < this.zoom;
      context.globalAlpha = faded ? 0.38 : 1;
      context.fillStyle = this.query !== "" && this.matched[frame] ? color("--match") : this.fill(frame, dark);
      context.fillRect(x, y, Math.max(wide - 0.6, 0.4), ROW - 1);
      if (frame === this.pointed) {
        context.globalAlpha = 1;
        context.strokeStyle = ink;
        context.lineWidth = 1.2;
        context.strokeRect(x + 0.6, y + 0.6, Math.max(wide - 1.8, 0.5), ROW - 2.2);
      }
      if (wide > 34) drawText(context, plain(data.name[frame] ?? ""), x + 5, y + ROW / 2, wide - 10, ink);
    };
    const path = this.path(this.zoom);
    for (const frame of path.slice(0, -1)) paint(frame, 0, width);
    for (let i = this.zoom; i < (this.end[this.zoom] ?? 0); ) {
      const wide = (data.bytes[i] ?? 0) * scale;
      if (wide < NARROWEST) {
        i = this.end[i] ?? i + 1;
        continue;
      }
      paint(i, ((this.start[i] ?? 0) - origin) * scale, wide);
      i++;
    }
    context.globalAlpha = 1;
  }
}

/** Cuts the text where it does not fit; widths of characters are estimated first, since measuring is slow. */
function drawText(context: CanvasRenderingContext2D, text: string, x: number, y: number, room: number, ink: string): void {
  let shown = text;
  if (text.length * 6.2 > room) {
    let letters = Math.floor(room / 6);
    shown = `${text.slice(0, letters)}…`;
    while (letters > 1 && context.measureText(shown).width > room) shown = `${text.slice(0, --letters)}…`;
    if (letters <= 1) return;
  }
  context.fillStyle = ink;
  context.fillText(shown, x, y);
}

function fileOf(place: string): string {
  return place.replace(/:\d+$/, "");
}

function hueOf(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 8) & 0xffff;
}
