/** Parts of a heat map at a finer resolution, from the server. */
import type { Chunks } from "./chunks";
import { count } from "./format";
import type { HeatData, Part, Patch } from "./heatmap";
import { answerView, type Live } from "./live";

/** The values that a grid covers: rows down, columns across. */
export interface Area {
  row_begin: number;
  row_end: number;
  column_begin: number;
  column_end: number;
}

export interface Tile extends Area {
  width: number;
  height: number;
  sampled: boolean;
}

/** The values [begin, end) that a cell covers. */
export type Span = [number, number];
export function part([begin, end]: Span): string {
  return end - begin > 1 ? `${count(begin)}–${count(end - 1)}` : count(begin);
}

export type Describe = (columns: Span, rows: Span) => string;

export async function loadTile(answer: Chunks): Promise<{ tile: Tile; cells: Float64Array }> {
  const view = await answerView(answer);
  return { tile: view["tile"] as unknown as Tile, cells: await answer.f64("tile.cells") };
}

function spanOf(begin: number, end: number, index: number, count: number): Span {
  const step = (end - begin) / count;
  const low = Math.floor(begin + index * step);
  return [low, Math.max(low + 1, Math.floor(begin + (index + 1) * step))];
}

export function describeTile(tile: Tile, describe: Describe): (column: number, row: number) => string {
  return (column, row) => {
    const columns = spanOf(tile.column_begin, tile.column_end, column, tile.width);
    const rows = spanOf(tile.row_begin, tile.row_end, row, tile.height);
    const mean = columns[1] - columns[0] > 1 || rows[1] - rows[0] > 1;
    return describe(columns, rows) + (tile.sampled ? " (mean of some values)" : mean ? " (mean)" : "");
  };
}

/** What makes a grid that covers an area zoom into the file. */
export function zoomInto(live: Live, question: Record<string, string | number>, area: Area, grid: { width: number; height: number }, describe: Describe): Pick<HeatData, "finer" | "across" | "down"> {
  const columns = area.column_end - area.column_begin;
  const rows = area.row_end - area.row_begin;
  const finer = async (part: Part, width: number, height: number, signal: AbortSignal): Promise<Patch> => {
    const args = {
      ...question,
      column_begin: area.column_begin + Math.floor((part.x / grid.width) * columns),
      column_end: area.column_begin + Math.min(columns, Math.ceil(((part.x + part.width) / grid.width) * columns)),
      row_begin: area.row_begin + Math.floor((part.y / grid.height) * rows),
      row_end: area.row_begin + Math.min(rows, Math.ceil(((part.y + part.height) / grid.height) * rows)),
      width,
      height,
    };
    const { tile, cells } = await loadTile(await live.ask("tile", args, signal));
    return {
      x: ((tile.column_begin - area.column_begin) / columns) * grid.width,
      width: ((tile.column_end - tile.column_begin) / columns) * grid.width,
      y: ((tile.row_begin - area.row_begin) / rows) * grid.height,
      height: ((tile.row_end - tile.row_begin) / rows) * grid.height,
      columns: tile.width,
      rows: tile.height,
      cells,
      describe: describeTile(tile, describe),
    };
  };
  return { finer, across: columns / grid.width, down: rows / grid.height };
}

/** A heat map of a whole area, asked from the server. */
export async function askHeat(live: Live, question: Record<string, string | number>, describe: Describe, signal?: AbortSignal): Promise<HeatData> {
  const { tile, cells } = await loadTile(await live.ask("tile", { width: 256, height: 256, ...question }, signal));
  return { width: tile.width, height: tile.height, cells, describe: describeTile(tile, describe), ...zoomInto(live, question, tile, tile, describe) };
}
