/** Bars: histograms and rankings, as elements that can be read, selected and printed. */
import { append, el } from "./dom";

export interface Bar {
  label: string;
  value: number;
  text: string;
  title?: string;
}

/** Upright bars of a histogram, with a table of the same numbers below. */
export function histogram(title: string, bars: Bar[], ticks = 8): HTMLElement {
  const most = Math.max(...bars.map((bar) => bar.value), 1e-300);
  const plot = el("div", { class: "histogram", role: "img", "aria-label": `${title}: ${bars.length} bars; the numbers are in the table below` });
  const every = Math.ceil(bars.length / ticks);
  bars.forEach((bar, index) => {
    const column = el("div", { class: "histogram-bar", title: bar.title ?? `${bar.label}: ${bar.text}` });
    const fill = el("div", { class: "histogram-fill" });
    fill.style.height = `${bar.value > 0 ? Math.max((100 * bar.value) / most, 1) : 0}%`;
    append(column, el("div", { class: "histogram-room" }, fill), el("span", { class: "histogram-label" }, index % every === 0 ? bar.label : ""));
    plot.append(column);
  });
  return el("figure", { class: "chart" }, el("figcaption", {}, title), plot, numbers(bars));
}

function numbers(bars: Bar[]): HTMLElement {
  const details = el("details", { class: "as-table" }, el("summary", {}, "as a table"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const body = el("tbody");
    for (const bar of bars) append(body, el("tr", {}, el("td", {}, bar.label), el("td", { class: "number" }, bar.text)));
    append(details, el("table", {}, body));
  });
  return details;
}

/** Level bars, largest first. */
export function ranking(title: string, bars: Bar[]): HTMLElement {
  const most = Math.max(...bars.map((bar) => Math.abs(bar.value)), 1e-300);
  const list = el("ol", { class: "ranking" });
  for (const bar of bars) {
    const fill = el("span", { class: "ranking-fill", "aria-hidden": "true" });
    fill.style.width = `${(100 * Math.abs(bar.value)) / most}%`;
    append(list, el("li", { title: bar.title ?? bar.label }, fill, el("bdi", { class: "ranking-label" }, bar.label), el("span", { class: "number" }, bar.text)));
  }
  return el("figure", { class: "chart" }, el("figcaption", {}, title), list);
}
