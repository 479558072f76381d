/** Pages of a long list, by buttons, and by a slider for any place. */
import { append, button, el } from "./dom";
import { count } from "./format";

export class Pager {
  readonly element = el("div", { class: "pager", role: "group", "aria-label": "Pages" });
  private readonly slider = el("input", { type: "range", "aria-label": "First of the page" });
  private readonly words = el("span", { class: "readout", role: "status" });
  private readonly buttons: HTMLButtonElement[];
  private first = 0;
  private size = 1;
  private total = 0;

  constructor(private readonly go: (first: number) => void) {
    this.buttons = [
      button("⇤", "First page", () => this.go(0)),
      button("←", "Page before", () => this.go(Math.max(0, this.first - this.size))),
      button("→", "Next page", () => this.go(this.first + this.size)),
      button("⇥", "Last page", () => this.go(this.lastPage())),
    ];
    this.slider.min = "0";
    this.slider.addEventListener("change", () => this.go(Number(this.slider.value)));
    append(this.element, ...this.buttons, this.slider, this.words);
  }

  /** shown : on this page; a full page sets the size of all. */
  show(first: number, shown: number, total: number): void {
    this.first = first;
    this.size = Math.max(this.size, shown);
    this.total = total;
    this.slider.max = String(this.lastPage());
    this.slider.step = "1";
    this.slider.value = String(first);
    this.slider.hidden = total <= this.size;
    this.buttons.forEach((item, index) => {
      item.hidden = total <= this.size;
      item.disabled = index < 2 ? first === 0 : first + shown >= total;
    });
    this.words.replaceChildren();
    append(this.words, total === 0 ? "none" : `${count(first)}–${count(first + shown - 1)} of ${count(total)}`);
  }

  private lastPage(): number {
    return Math.max(0, Math.floor((this.total - 1) / this.size) * this.size);
  }
}
