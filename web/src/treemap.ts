/** Rectangles whose areas are sizes: squarified, on a canvas, with the names below the pointer. */
import { append, canvas, color, el, name } from "./dom";
import { plain } from "./format";

export interface TreemapItem {
  label: string;
  /** The label inside of a rectangle. */
  short: string;
  value: number;
  group: string;
  text: string;
}

interface Cell {
  item: TreemapItem;
  index: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

const HUES = [205, 28, 150, 265, 340, 50, 185, 310];

/** Bruls, Huizing, van Wijk: rows along the shorter side, while their rectangles become squarer. */
function layout(items: { item: TreemapItem; index: number }[], width: number, height: number): Cell[] {
  const cells: Cell[] = [];
  let rest = items.reduce((sum, { item }) => sum + item.value, 0);
  let x = 0;
  let y = 0;
  let wide = width;
  let high = height;
  for (let first = 0; first < items.length && rest > 0; ) {
    const side = Math.min(wide, high);
    const scale = (wide * high) / rest;
    let sum = 0;
    let worst = Infinity;
    let end = first;
    for (; end < items.length; end++) {
      const next = sum + (items[end]?.item.value ?? 0) * scale;
      const least = (items[end]?.item.value ?? 0) * scale;
      const most = (items[first]?.item.value ?? 0) * scale;
      const ratio = Math.max((side * side * most) / (next * next), (next * next) / (side * side * Math.max(least, 1e-12)));
      if (ratio > worst) break;
      worst = ratio;
      sum = next;
    }
    const depth = side > 0 ? sum / side : 0;
    let along = 0;
    for (let i = first; i < end; i++) {
      const entry = items[i];
      if (!entry) continue;
      const length = depth > 0 ? (entry.item.value * scale) / depth : 0;
      cells.push(wide >= high ? { ...entry, x, y: y + along, width: depth, height: length } : { ...entry, x: x + along, y, width: length, height: depth });
      along += length;
      rest -= entry.item.value;
    }
    if (wide >= high) {
      x += depth;
      wide -= depth;
    } else {
      y += depth;
      high -= depth;
    }
    first = end;
  }
  return cells;
}

/** Lines of a name, broken after dots and slashes; a part that is too long is cut. */
function wrap(text: string, letters: number, most: number): string[] {
  const cut = (part: string): string => (part.length > letters ? `${part.slice(0, Math.max(letters - 1, 1))}…` : part);
  const lines: string[] = [];
  for (const part of text.match(/[^./]*[./]?/g) ?? []) {
    const last = lines[lines.length - 1];
    if (last !== undefined && (last.length + part.length <= letters || lines.length === most)) lines[lines.length - 1] = last + part;
    else if (part !== "") lines.push(part);
  }
  return lines.slice(0, most).map(cut);
}

export function treemap(label: string, items: TreemapItem[], choose: (index: number) => void): { element: HTMLElement; search: (query: string) => void } {
  const groups = [...new Set(items.map((item) => item.group))];
  const sorted = items.map((item, index) => ({ item, index })).filter(({ item }) => item.value > 0).sort((a, b) => b.item.value - a.item.value);
  let cells: Cell[] = [];
  let query = "";
  let pointed: Cell | undefined;
  const readout = el("p", { class: "readout" });
  const fill = (group: string, dark: boolean): string => {
    const hue = HUES[groups.indexOf(group) % HUES.length] ?? 205;
    return dark ? `hsl(${hue} 26% 32%)` : `hsl(${hue} 46% 84%)`;
  };
  const drawing = canvas(label, (context, width, height) => {
    const dark = color("--is-dark") === "1";
    cells = layout(sorted, width, height);
    context.font = `11px ${color("--sans")}`;
    context.textBaseline = "top";
    for (const cell of cells) {
      if (cell.width < 0.7 || cell.height < 0.7) continue;
      const hit = query === "" || cell.item.label.toLowerCase().includes(query);
      context.globalAlpha = hit ? 1 : 0.3;
      context.fillStyle = query !== "" && hit ? color("--match") : fill(cell.item.group, dark);
      context.fillRect(cell.x, cell.y, Math.max(cell.width - 1, 0.5), Math.max(cell.height - 1, 0.5));
      if (cell === pointed || cell.item === pointed?.item) {
        context.strokeStyle = color("--ink");
        context.strokeRect(cell.x + 0.5, cell.y + 0.5, cell.width - 2, cell.height - 2);
      }
      if (cell.width > 44 && cell.height > 16) {
        context.fillStyle = color("--ink");
        wrap(plain(cell.item.short), Math.floor((cell.width - 8) / 5.8), Math.floor((cell.height - 3) / 13)).forEach((line, index) => context.fillText(line, cell.x + 4, cell.y + 4 + 13 * index));
      }
    }
    context.globalAlpha = 1;
  });
  const at = (event: MouseEvent): Cell | undefined =>
    cells.find((cell) => event.offsetX >= cell.x && event.offsetX < cell.x + cell.width && event.offsetY >= cell.y && event.offsetY < cell.y + cell.height);
  drawing.element.addEventListener("mousemove", (event) => {
    const cell = at(event);
    if (!cell || cell === pointed) return;
    pointed = cell;
    readout.replaceChildren(name(cell.item.label), el("span", { class: "quiet" }, ` ${cell.item.text}`));
    drawing.redraw();
  });
  drawing.element.addEventListener("click", (event) => {
    const cell = at(event);
    if (cell) choose(cell.index);
  });
  const legend = el("div", { class: "legend" });
  for (const group of groups.slice(0, 12)) {
    const key = el("span", { class: "legend-key", "aria-hidden": "true" });
    const paint = (): void => void (key.style.background = fill(group, color("--is-dark") === "1"));
    paint();
    document.addEventListener("coffer-theme", paint);
    append(legend, key, name(group));
  }
  append(readout, el("span", { class: "quiet" }, "Move over a rectangle to see its name."));
  return {
    element: el("div", { class: "treemap" }, drawing.element, readout, legend),
    search: (text) => {
      query = text;
      drawing.redraw();
    },
  };
}
