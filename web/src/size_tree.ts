/** Names with dots as a tree of sizes; a branch is made when it is first opened. */
import { append, el, name } from "./dom";
import { bytes, count, counted, percent } from "./format";

interface Branch {
  label: string;
  size: number;
  leaves: number;
  children: Map<string, Branch>;
}

function makeBranch(label: string): Branch {
  return { label, size: 0, leaves: 0, children: new Map() };
}

function grow(names: string[], sizes: Float64Array): Branch {
  const root = makeBranch("all");
  names.forEach((text, index) => {
    let branch = root;
    for (const part of ["", ...text.split(".")]) {
      if (part !== "" || branch !== root) {
        let child = branch.children.get(part);
        if (!child) branch.children.set(part, (child = makeBranch(part)));
        branch = child;
      }
      branch.size += sizes[index] ?? 0;
      branch.leaves++;
    }
  });
  return root;
}

/** A branch with one child continues in the same line: "model.layers". */
function collapse(branch: Branch): [string, Branch] {
  let label = branch.label;
  let end = branch;
  for (let steps = 0; end.children.size === 1 && steps < 100; steps++) {
    const [child] = end.children.values();
    if (!child) break;
    label += `.${child.label}`;
    end = child;
  }
  return [label, end];
}

const MOST_CHILDREN = 500;

function show(branch: Branch, total: number): HTMLElement {
  const [label, end] = collapse(branch);
  const amount = el("span", { class: "number" }, `${bytes(end.size)} · ${percent(end.size, total)}`);
  if (end.children.size === 0) return el("div", { class: "leaf" }, name(label), amount);
  const details = el("details", {}, el("summary", {}, name(label), el("span", { class: "quiet" }, counted(end.leaves, "tensor")), amount));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const children = [...end.children.values()].sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
    append(details, ...children.slice(0, MOST_CHILDREN).map((child) => show(child, total)));
    if (children.length > MOST_CHILDREN) append(details, el("p", { class: "quiet" }, `${count(children.length - MOST_CHILDREN)} more`));
  });
  return details;
}

export function sizeTree(names: string[], sizes: Float64Array): HTMLElement {
  const root = grow(names, sizes);
  const element = el("div", { class: "tree" });
  append(element, ...[...root.children.values()].sort((a, b) => b.size - a.size).slice(0, MOST_CHILDREN).map((branch) => show(branch, root.size)));
  return element;
}
