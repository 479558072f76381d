/** A sorted table of any length: only the rows in view exist. */
import { append, el } from "./dom";
import { count, counted } from "./format";

const ROW_HEIGHT = 26;
const MARGIN_ROWS = 12;

export interface Column {
  title: string;
  /** The share of the width. */
  width: string;
  numeric?: boolean;
  /** Sorts by this number; without it the column sorts by `text`. */
  value?: (row: number) => number;
  text: (row: number) => string;
  render?: (row: number) => Node;
  help?: string;
}

export interface TableOptions {
  label: string;
  columns: Column[];
  rows: number;
  sortBy?: number;
  /** Whether a row contains the search text, which is in lower case. */
  matches: (row: number, query: string) => boolean;
  select?: (row: number) => void;
  height?: number;
}

export class VirtualTable {
  readonly element: HTMLElement;
  private readonly body = el("div", { class: "vt-body", role: "rowgroup" });
  private readonly scroller: HTMLElement;
  private readonly caption = el("p", { class: "quiet caption" });
  private order: number[] = [];
  private sortColumn: number;
  private descending = true;
  private query = "";
  private keep: ((row: number) => boolean) | undefined;
  private selected = -1;

  constructor(private readonly options: TableOptions) {
    this.sortColumn = options.sortBy ?? 0;
    const head = el("div", { class: "vt-row vt-head", role: "row", "aria-rowindex": 1 });
    const template = options.columns.map((column) => column.width).join(" ");
    options.columns.forEach((column, index) => {
      const title = el("button", { type: "button", title: column.help ?? `Sort by ${column.title}` }, column.title);
      title.addEventListener("click", () => this.sort(index));
      append(head, el("div", { role: "columnheader", class: column.numeric ? "number" : "" }, title));
    });
    head.style.gridTemplateColumns = template;
    this.scroller = el(
      "div",
      { class: "vt", role: "table", "aria-label": options.label, tabindex: 0 },
      el("div", { role: "rowgroup", class: "vt-headgroup" }, head),
      this.body,
    );
    this.scroller.style.maxHeight = `${options.height ?? 480}px`;
    this.scroller.style.setProperty("--columns", template);
    this.scroller.addEventListener("scroll", () => this.render());
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.render()).observe(this.scroller);
    this.element = el("div", { class: "vt-frame" }, this.scroller, this.caption);
    this.arrange();
  }

  /** keep : besides the search, only these rows. */
  filter(query: string, keep?: (row: number) => boolean): void {
    this.query = query;
    this.keep = keep;
    this.arrange();
  }

  /** Selects the first row, so that what belongs to a row is in sight. */
  selectFirst(): void {
    if (this.order.length > 0) this.choose(0);
  }

  sortAscending(): void {
    this.descending = false;
    this.arrange();
  }

  private sort(column: number): void {
    const numeric = this.options.columns[column]?.value !== undefined;
    this.descending = column === this.sortColumn ? !this.descending : numeric;
    this.sortColumn = column;
    this.arrange();
  }

  private arrange(): void {
    const column = this.options.columns[this.sortColumn];
    const rows: number[] = [];
    for (let row = 0; row < this.options.rows; row++) if ((this.query === "" || this.options.matches(row, this.query)) && (this.keep?.(row) ?? true)) rows.push(row);
    if (column) {
      const { value, text } = column;
      const direction = this.descending ? -1 : 1;
      if (value) rows.sort((a, b) => direction * (value(a) - value(b)) || a - b);
      else rows.sort((a, b) => direction * text(a).localeCompare(text(b), "en", { numeric: true }) || a - b);
    }
    this.order = rows;
    this.scroller.setAttribute("aria-rowcount", String(rows.length + 1));
    const total = this.options.rows;
    this.caption.replaceChildren();
    const searched = this.query === "" ? "" : ` match “${this.query}”`;
    append(this.caption, rows.length === total && searched === "" ? counted(total, "row") : `${count(rows.length)} of ${counted(total, "row")}${searched}`);
    this.scroller.querySelectorAll('[role="columnheader"]').forEach((header, index) => {
      if (index === this.sortColumn) header.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    this.render();
  }

  private render(): void {
    const view = this.scroller.clientHeight || 480;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - MARGIN_ROWS);
    const last = Math.min(this.order.length, Math.ceil((this.scroller.scrollTop + view) / ROW_HEIGHT) + MARGIN_ROWS);
    this.body.style.height = `${this.order.length * ROW_HEIGHT}px`;
    const rows: HTMLElement[] = [];
    for (let index = first; index < last; index++) rows.push(this.makeRow(index));
    this.body.replaceChildren(...rows);
  }

  private makeRow(index: number): HTMLElement {
    const row = this.order[index] ?? 0;
    const line = el("div", { class: row === this.selected ? "vt-row selected" : "vt-row", role: "row", "aria-rowindex": index + 2 });
    line.style.transform = `translateY(${index * ROW_HEIGHT}px)`;
    for (const column of this.options.columns) {
      const cell = el("div", { role: "cell", class: column.numeric ? "number" : "" });
      append(cell, column.render ? column.render(row) : column.text(row));
      line.append(cell);
    }
    if (this.options.select) {
      line.classList.add("clickable");
      line.addEventListener("click", () => this.choose(index));
    }
    return line;
  }

  private choose(index: number): void {
    const row = this.order[index];
    if (row === undefined) return;
    this.selected = row;
    const top = index * ROW_HEIGHT;
    const view = this.scroller.clientHeight - 2 * ROW_HEIGHT;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + view) this.scroller.scrollTop = top - view;
    this.render();
    this.options.select?.(row);
  }

  private onKey(event: KeyboardEvent): void {
    if (!this.options.select || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    event.preventDefault();
    const at = this.order.indexOf(this.selected);
    const step = event.key === "ArrowDown" ? 1 : -1;
    this.choose(Math.min(this.order.length - 1, Math.max(0, at + step)));
  }
}
