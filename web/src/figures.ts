/** The few numbers that a page begins with. */
import { append, el } from "./dom";
import type { Shell } from "./shell";

export interface Figure {
  label: string;
  value: string;
  note?: string;
}

function figures(list: Figure[]): HTMLElement {
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

/** The first section of a page. verb : the command that prints the same of one file. */
export function overview(shell: Shell, files: number, verb: "info" | "stats", list: Figure[]): void {
  const section = shell.section("overview", "Overview", files > 1 ? `coffer diff ${shell.path(0)} ${shell.path(1)}` : `coffer ${verb} ${shell.path()}`);
  section.body.append(figures(list));
}
