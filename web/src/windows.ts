/** Flame graphs of a part of the run, from the bytes of each stack in equal intervals. */
import type { Chunks } from "./chunks";
import type { FlameData } from "./flame";

const NONE = 0xffffffff;
const OTHERS = "other stacks";

export interface WindowStacks {
  /** The length of an interval. */
  step: number;
  /** The interval borders around a window. */
  round(begin: number, end: number): [number, number];
  /** allocated : in the window; otherwise live at its end. */
  flame(begin: number, end: number, allocated: boolean): FlameData;
}

interface Node {
  name: string;
  place: string;
  children: Map<string, Node>;
  bytes: number;
  own: number;
  allocs: number;
}

function makeNode(name: string, place: string): Node {
  return { name, place, children: new Map(), bytes: 0, own: 0, allocs: 0 };
}

/** "grab (grow.c:9)": the function, and the file without the line, since calls from different lines are one frame. */
function split(frame: string): [string, string] {
  const parts = /^(.+) \(([^()]*)\)$/.exec(frame);
  return parts ? [parts[1] ?? "", (parts[2] ?? "").replace(/:\d+$/, "")] : [frame, ""];
}

/** Depth-first, the largest branch first, without recursion. */
function flatten(root: Node): FlameData {
  const parent: number[] = [];
  const nodes: Node[] = [];
  const waiting: [Node, number][] = [[root, NONE]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [node, above] = next;
    const at = nodes.push(node) - 1;
    parent.push(above);
    const children = [...node.children.values()].filter((child) => child.bytes > 0).sort((a, b) => a.bytes - b.bytes);
    for (const child of children) waiting.push([child, at]);
  }
  return {
    parent: Uint32Array.from(parent),
    name: nodes.map((node) => node.name),
    place: nodes.map((node) => node.place),
    bytes: Float64Array.from(nodes, (node) => node.bytes),
    own: Float64Array.from(nodes, (node) => node.own),
    allocs: Float64Array.from(nodes, (node) => node.allocs),
  };
}

export async function loadWindows(chunks: Chunks, step: number, count: number): Promise<WindowStacks> {
  const texts = await chunks.texts();
  const first = await chunks.u32("stacks.first");
  const frames = await chunks.u32("stacks.frames");
  const allocated = await chunks.f64("windows.allocated");
  const freed = await chunks.f64("windows.freed");
  const allocs = await chunks.f64("windows.allocs");
  const rows = allocated.length / count;
  const stackOf = (row: number): string[] =>
    row + 1 < first.length ? [...frames.subarray(first[row] ?? 0, first[row + 1] ?? 0)].reverse().map((at) => texts[at] ?? "") : [OTHERS];
  const borders = (begin: number, end: number): [number, number] => {
    const from = Math.min(count - 1, Math.max(0, Math.floor(begin / step)));
    return [from, Math.min(count, Math.max(from + 1, Math.ceil(end / step)))];
  };
  return {
    step,
    round: (begin, end) => {
      const [from, to] = borders(begin, end);
      return [from * step, to * step];
    },
    flame: (begin, end, inWindow) => {
      const [from, to] = borders(begin, end);
      const root = makeNode("all", "");
      for (let row = 0; row < rows; row++) {
        let bytes = 0;
        let blocks = 0;
        for (let at = inWindow ? from : 0; at < to; at++) {
          const cell = row * count + at;
          bytes += (allocated[cell] ?? 0) - (inWindow ? 0 : (freed[cell] ?? 0));
          blocks += inWindow ? (allocs[cell] ?? 0) : 0;
        }
        if (bytes <= 0) continue;
        let node = root;
        root.bytes += bytes;
        root.allocs += blocks;
        for (const frame of stackOf(row)) {
          const [name, place] = split(frame);
          const key = `${name}\n${place}`;
          let child = node.children.get(key);
          if (!child) node.children.set(key, (child = makeNode(name, place)));
          child.bytes += bytes;
          child.allocs += blocks;
          node = child;
        }
        node.own += bytes;
      }
      return flatten(root);
    },
  };
}
