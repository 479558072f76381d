/** Samples as tiles: pictures, sounds that play, texts, arrays. What a tile draws is made when it comes into view. */
import type { Chunks } from "./chunks";
import { append, button, choice, color, el, name } from "./dom";
import { count, trim } from "./format";
import { paintCells } from "./heatmap";

const WAVE_COLUMNS = 128;
/** By the numbers of coffer_audio_kind. */
const SOUND_TYPES = ["", "audio/wav", "audio/flac", "audio/mpeg", "audio/aac", "audio/ogg", "audio/ogg", "audio/mp4"];

type Bytes = Uint8Array<ArrayBuffer>;

/** What fills the upper part of a tile. */
export interface TileKind {
  id: string;
  label: string;
  field: number;
  /** The element of a row, or undefined when the value cannot be shown. */
  make: (row: number) => HTMLElement | undefined;
  /** When the tile comes into view, and when it leaves. */
  enter?: (row: number, element: HTMLElement) => void;
  leave?: (row: number, element: HTMLElement) => void;
}

function part(data: Uint8Array, ends: Uint32Array, row: number): Bytes {
  const begin = row === 0 ? 0 : (ends[row - 1] ?? 0);
  return new Uint8Array(data.buffer as ArrayBuffer, begin, (ends[row] ?? 0) - begin);
}

export async function pictureKind(chunks: Chunks, field: number, sampleOf: (row: number) => number): Promise<TileKind> {
  const ends = await chunks.u32("pictures.ends");
  const data = await chunks.u8("pictures.data");
  return {
    id: "pictures",
    label: "pictures",
    field,
    make: (row) => {
      if (part(data, ends, row).length === 0) return undefined;
      const image = el("img");
      image.alt = `sample ${count(sampleOf(row))}`;
      return image;
    },
    enter: (row, element) => {
      (element as HTMLImageElement).src = URL.createObjectURL(new Blob([part(data, ends, row)], { type: "image/jpeg" }));
    },
    leave: (_, element) => {
      URL.revokeObjectURL((element as HTMLImageElement).src);
      element.removeAttribute("src");
    },
  };
}

/** One player serves all tiles: its address is that of the sound that plays. */
export async function soundKind(chunks: Chunks, field: number, sampleOf: (row: number) => number): Promise<TileKind & { player: HTMLElement }> {
  const ends = await chunks.u32("sounds.ends");
  const data = await chunks.u8("sounds.data");
  const kinds = await chunks.u8("sounds.kind");
  const waves = await chunks.u8("sounds.waves");
  const seconds = await chunks.f64("sounds.seconds");
  const player = el("audio", { "aria-label": "Player" });
  player.controls = true;
  const title = el("span", { class: "quiet" }, "Choose a sound to play it.");
  const play = (row: number): void => {
    if (player.src) URL.revokeObjectURL(player.src);
    player.src = URL.createObjectURL(new Blob([part(data, ends, row)], { type: SOUND_TYPES[kinds[row] ?? 0] ?? "" }));
    title.replaceChildren();
    append(title, `sample ${count(sampleOf(row))}`);
    player.play().catch(() => append(title, " · this browser cannot play it"));
  };
  return {
    id: "sounds",
    label: "sounds",
    field,
    player: el("div", { class: "player" }, player, title),
    make: (row) => {
      const length = seconds[row] ?? 0;
      if (length <= 0) return undefined;
      const wave = el("canvas", { class: "wave", "aria-hidden": "true" });
      const label = `sample ${count(sampleOf(row))}, ${trim(length, 3)} s`;
      if (part(data, ends, row).length === 0) return el("span", { class: "wave-tile", role: "img", "aria-label": `Wave of ${label}` }, wave);
      const element = button("", `Play ${label}`, () => play(row), "wave-tile");
      element.setAttribute("aria-label", `Play ${label}`);
      append(element, wave, el("span", { class: "wave-play", "aria-hidden": "true" }, "▶ ", `${trim(length, 3)} s`));
      return element;
    },
    enter: (row, element) => {
      const target = element.querySelector("canvas");
      if (target) drawWave(target, waves.subarray(row * 2 * WAVE_COLUMNS, (row + 1) * 2 * WAVE_COLUMNS));
    },
  };
}

function drawWave(target: HTMLCanvasElement, wave: Uint8Array): void {
  target.width = WAVE_COLUMNS;
  target.height = 100;
  const context = target.getContext("2d");
  if (!context) return;
  context.fillStyle = color("--accent");
  for (let column = 0; column < WAVE_COLUMNS; column++) {
    const low = ((wave[2 * column] ?? 127) / 255) * 100;
    const high = ((wave[2 * column + 1] ?? 127) / 255) * 100;
    context.fillRect(column, 100 - high - 0.5, 1, Math.max(high - low, 1));
  }
}

export function textKind(field: number, texts: string[]): TileKind {
  return { id: "texts", label: "texts", field, make: (row) => el("p", { class: "tile-text" }, name(texts[row] ?? "", "text")) };
}

export async function arrayKind(chunks: Chunks, field: number, sampleOf: (row: number) => number): Promise<TileKind> {
  const width = await chunks.u32("arrays.width");
  const height = await chunks.u32("arrays.height");
  const cells = await chunks.f32("arrays.cells");
  const first = new Float64Array(width.length + 1);
  for (let row = 0; row < width.length; row++) first[row + 1] = (first[row] ?? 0) + (width[row] ?? 0) * (height[row] ?? 0);
  return {
    id: "arrays",
    label: "arrays",
    field,
    make: (row) => ((width[row] ?? 0) === 0 ? undefined : el("canvas", { class: "tile-array", role: "img", "aria-label": `array of sample ${count(sampleOf(row))}` })),
    enter: (row, element) => paintCells(element as HTMLCanvasElement, width[row] ?? 1, height[row] ?? 1, cells.subarray(first[row], first[row + 1])),
  };
}

export interface GalleryOptions {
  kinds: TileKind[];
  rows: number;
  /** The line below a tile. */
  caption: (row: number) => Node[];
  title: (row: number) => string;
  changed: (kind: TileKind) => void;
}

export class Gallery {
  readonly element = el("ul", { class: "gallery" });
  readonly controls: HTMLElement;
  private tiles: { element: HTMLElement; row: number }[] = [];
  private readonly content = new Map<Element, number>();
  private kind: TileKind;
  private keep: (row: number) => boolean = () => true;
  private readonly observer = new IntersectionObserver((entries) => this.onSight(entries), { rootMargin: "600px" });
  private readonly inSight = new Set<Element>();
  private readonly choices;

  constructor(private readonly options: GalleryOptions) {
    this.kind = options.kinds[0] as TileKind;
    this.choices = choice(
      "What to show",
      options.kinds.map(({ id, label }) => ({ value: id, label })),
      this.kind.id,
      (id) => this.show(id),
    );
    this.controls = this.choices.element;
    this.show(this.kind.id);
  }

  show(id: string): void {
    const kind = this.options.kinds.find((item) => item.id === id);
    if (!kind) return;
    this.clear();
    this.kind = kind;
    this.choices.set(kind.id);
    for (let row = 0; row < this.options.rows; row++) {
      const content = kind.make(row);
      const tile = el("li", { title: this.options.title(row) }, content ?? el("span", { class: "missing" }, "cannot be shown"));
      append(tile, el("p", {}, ...this.options.caption(row)));
      if (content) {
        this.content.set(content, row);
        this.observer.observe(content);
      }
      this.tiles.push({ element: tile, row });
      this.element.append(tile);
    }
    this.filter(this.keep);
    this.options.changed(kind);
  }

  filter(keep: (row: number) => boolean): void {
    this.keep = keep;
    for (const tile of this.tiles) tile.element.hidden = !keep(tile.row);
  }

  private clear(): void {
    this.observer.disconnect();
    for (const element of this.inSight) this.kind.leave?.(this.content.get(element) ?? 0, element as HTMLElement);
    this.inSight.clear();
    this.content.clear();
    this.tiles = [];
    this.element.replaceChildren();
  }

  private onSight(entries: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const row = this.content.get(target);
      if (row === undefined || isIntersecting === this.inSight.has(target)) continue;
      if (isIntersecting) {
        this.inSight.add(target);
        this.kind.enter?.(row, target as HTMLElement);
      } else {
        this.inSight.delete(target);
        this.kind.leave?.(row, target as HTMLElement);
      }
    }
  }
}
