/** The few numbers that a page begins with. */
import { append, el } from "./dom";

export interface Figure {
  label: string;
  value: string;
  note?: string;
}

export function figures(list: Figure[]): HTMLElement {
  const element = el("dl", { class: "figures" });
  for (const { label, value, note } of list)
    append(element, el("div", { class: "figure" }, el("dt", {}, label), el("dd", {}, el("strong", {}, value), el("span", {}, note ?? ""))));
  return element;
}

/** A figure of one file, or of two: what it was, what it is. */
export function compared(label: string, values: number[], format: (value: number) => string, note = ""): Figure {
  const [first = 0, second] = values;
  if (second === undefined) return { label, value: format(first), note };
  return { label, value: format(second), note: first === second ? "the same in both" : `${format(first)} → ${format(second)}` };
}
