/** Elements. Text from files enters a page through this module alone, as text nodes without control characters. */
import { plain } from "./format";

type Child = Node | string | null | undefined;
interface Attributes {
  class?: string;
  id?: string;
  title?: string;
  role?: string;
  type?: string;
  tabindex?: number;
  for?: string;
  placeholder?: string;
  hidden?: "";
  [aria: `aria-${string}`]: string | number;
  [data: `data-${string}`]: string;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) element.setAttribute(name, name === "title" || name.startsWith("aria-") ? plain(String(value)) : String(value));
  append(element, ...children);
  return element;
}

export function append(parent: Element, ...children: Child[]): void {
  for (const child of children)
    if (child !== null && child !== undefined) parent.append(typeof child === "string" ? plain(child) : child);
}

/** A name from a file, isolated from the direction of the text around it. */
export function name(text: string, className = "name"): HTMLElement {
  return el("bdi", { class: className, title: text }, text);
}

export function button(label: string, title: string, action: () => void, className = "button"): HTMLButtonElement {
  const element = el("button", { type: "button", class: className, title }, label);
  element.addEventListener("click", action);
  return element;
}

/** A row of buttons of which one is chosen. */
export function choice<T extends string>(
  label: string,
  options: readonly { value: T; label: string; title?: string }[],
  initial: T,
  changed: (value: T) => void,
): { element: HTMLElement; set: (value: T) => void; hide: (value: T, hidden: boolean) => void } {
  const buttons = new Map<T, HTMLButtonElement>();
  const set = (value: T): void => {
    for (const [key, item] of buttons) item.setAttribute("aria-pressed", String(key === value));
  };
  const element = el("div", { class: "choice", role: "group", "aria-label": label });
  for (const option of options) {
    const item = button(option.label, option.title ?? option.label, () => {
      set(option.value);
      changed(option.value);
    });
    buttons.set(option.value, item);
    element.append(item);
  }
  set(initial);
  const hide = (value: T, hidden: boolean): void => {
    const item = buttons.get(value);
    if (item) item.hidden = hidden;
  };
  return { element, set, hide };
}

/** A canvas whose pixels are those of the screen; `draw` runs at once, and when its size or the theme changes. */
export function canvas(label: string, draw: (context: CanvasRenderingContext2D, width: number, height: number) => void): {
  element: HTMLCanvasElement;
  redraw: () => void;
} {
  const element = el("canvas", { role: "img", "aria-label": label });
  let waiting = false;
  const paint = (): void => {
    waiting = false;
    const width = element.clientWidth;
    const height = element.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    const context = element.getContext("2d");
    if (!context || width === 0 || height === 0) return;
    if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
    if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  };
  const redraw = (): void => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paint);
  };
  new ResizeObserver(redraw).observe(element);
  document.addEventListener("coffer-theme", redraw);
  return { element, redraw };
}

/** The value of a custom property, for drawing on a canvas in the colors of the theme. */
export function color(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}
