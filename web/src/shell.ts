/** What every page has: header, sections, search, keyboard, theme, deep links, commands to copy. */
import { append, button, el, name } from "./dom";
import { baseName, bytes, counted, shell } from "./format";
import type { Summary } from "./types";

export interface Section {
  id: string;
  element: HTMLElement;
  body: HTMLElement;
  controls: HTMLElement;
  setCommand(command: string): void;
}

type Parameters = Record<string, string>;

export class Shell {
  readonly main = el("main", { id: "main" });
  private readonly nav = el("nav", { class: "sections", "aria-label": "Sections" });
  private theme = this.storedTheme();
  private readonly searchBox = el("input", { type: "search", id: "search", placeholder: "Search  /", "aria-label": "Search this page" });
  private readonly status = el("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  private readonly listeners: ((query: string) => void)[] = [];
  private readonly restorers = new Map<string, (parameters: Parameters) => void>();
  private readonly escapes: (() => boolean)[] = [];
  private readonly sections: Section[] = [];
  private readonly help = this.makeHelp();

  constructor(private readonly summary: Summary) {
    this.applyTheme();
    document.title = `${summary.files.map((file) => baseName(file.name)).join(" → ")} · Coffer`;
  }

  mount(root: HTMLElement): void {
    const skip = el("a", { class: "skip" }, "Skip to content");
    skip.setAttribute("href", "#main");
    append(root, skip, this.makeHeader(), this.nav, this.main, this.makeFooter(), this.help, this.status);
    document.addEventListener("keydown", (event) => this.onKey(event));
    this.searchBox.addEventListener("input", () => this.search(this.searchBox.value));
    window.addEventListener("hashchange", () => this.restore());
  }

  /** After all sections are there. */
  begin(): void {
    this.watchSections();
    this.restore();
  }

  get query(): string {
    return this.searchBox.value.trim().toLowerCase();
  }

  onSearch(listener: (query: string) => void): void {
    this.listeners.push(listener);
  }

  /** The latest that returns true has used the key. */
  onEscape(listener: () => boolean): void {
    this.escapes.unshift(listener);
  }

  say(text: string): void {
    this.status.replaceChildren();
    append(this.status, text);
  }

  /** file : the index of the file, for commands. */
  path(file = 0): string {
    return shell(this.summary.files[file]?.name ?? "");
  }

  section(id: string, title: string, command: string): Section {
    const body = el("div", { class: "body" });
    const controls = el("div", { class: "controls" });
    const code = el("code", {}, command);
    let current = command;
    const copy = button("", "Copy this command", () => void this.copy(current), "command");
    append(copy, code);
    const element = el(
      "section",
      { id, "aria-labelledby": `${id}-title` },
      el("div", { class: "head" }, el("h2", { id: `${id}-title` }, title), controls, copy),
      body,
    );
    const section: Section = {
      id,
      element,
      body,
      controls,
      setCommand: (text) => {
        current = text;
        code.replaceChildren();
        append(code, text);
      },
    };
    const link = el("a", { "data-section": id }, title);
    link.setAttribute("href", `#${id}`);
    this.nav.append(link);
    this.main.append(element);
    this.sections.push(section);
    return section;
  }

  /** A section whose state is part of the address: "#flame?what=leaks". */
  remember(id: string, restore: (parameters: Parameters) => void): (parameters: Parameters) => void {
    this.restorers.set(id, restore);
    return (parameters) => {
      const query = new URLSearchParams(parameters).toString();
      try {
        history.replaceState(null, "", `#${id}${query ? `?${query}` : ""}`);
      } catch {
        // A page inside a sandbox has no history: the link cannot be kept.
      }
    };
  }

  private restore(): void {
    const [id = "", query = ""] = decodeURIComponentSafely(location.hash.slice(1)).split("?", 2);
    if (!this.sections.some((section) => section.id === id)) return;
    this.restorers.get(id)?.(Object.fromEntries(new URLSearchParams(query)));
    document.getElementById(id)?.scrollIntoView();
  }

  private search(value: string): void {
    const query = value.trim().toLowerCase();
    for (const listener of this.listeners) listener(query);
  }

  private async copy(command: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(command);
      this.say(`copied: ${command}`);
    } catch {
      this.say("the browser did not allow copying");
    }
  }

  // ---- Header ----

  private makeHeader(): HTMLElement {
    const titles = el("div", { class: "files" });
    this.summary.files.forEach((file, index) => {
      if (index > 0) append(titles, el("span", { class: "arrow", "aria-hidden": "true" }, "→"));
      const size = file.info["size"];
      append(
        titles,
        el(
          "div",
          { class: "file" },
          el("h1", {}, name(baseName(file.name))),
          el("p", {}, `${file.title}${typeof size === "number" ? ` · ${bytes(size)}` : ""}`, this.makeChip(index)),
        ),
      );
    });
    const tools = el(
      "div",
      { class: "tools" },
      this.searchBox,
      button("◐", "Switch between light and dark (t)", () => this.toggleTheme(), "button icon"),
      button("?", "Keyboard shortcuts (?)", () => this.help.showModal(), "button icon"),
    );
    return el("header", {}, titles, tools);
  }

  private makeChip(index: number): HTMLElement {
    const file = this.summary.files[index];
    const errors = file?.errors ?? 0;
    const warnings = file?.warnings ?? 0;
    if (errors > 0) return el("span", { class: "chip error" }, counted(errors, "error"));
    if (warnings > 0) return el("span", { class: "chip warning" }, counted(warnings, "warning"));
    return el("span", { class: "chip good" }, "no findings");
  }

  private makeFooter(): HTMLElement {
    return el("footer", {}, `Written by coffer ${this.summary.coffer}. The page contains its data and loads nothing.`);
  }

  private makeHelp(): HTMLDialogElement {
    const rows: [string, string][] = [
      ["/", "search"],
      ["Esc", "clear the search, zoom out, close"],
      ["1 … 9", "go to a section"],
      ["← ↑ ↓ →", "move in a flame graph, a table or a map that has the focus"],
      ["Enter", "zoom into the frame, open the row"],
      ["t", "light or dark"],
      ["?", "this list"],
    ];
    const list = el("dl");
    for (const [key, meaning] of rows) append(list, el("dt", {}, el("kbd", {}, key)), el("dd", {}, meaning));
    const dialog = el("dialog", { "aria-label": "Keyboard shortcuts" }, el("h2", {}, "Keyboard"), list);
    append(dialog, button("Close", "Close this list", () => dialog.close()));
    return dialog;
  }

  // ---- Keyboard ----

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape") return this.onEscapeKey();
    if (typing) return;
    const digit = Number(event.key);
    if (event.key === "/") {
      event.preventDefault();
      this.searchBox.focus();
      this.searchBox.select();
    } else if (event.key === "?") {
      this.help.showModal();
    } else if (event.key === "t") {
      this.toggleTheme();
    } else if (digit >= 1 && digit <= this.sections.length) {
      const section = this.sections[digit - 1];
      if (section) location.hash = section.id;
    }
  }

  private onEscapeKey(): void {
    if (this.help.open) return;
    if (this.searchBox.value !== "") {
      this.searchBox.value = "";
      this.search("");
      return;
    }
    if (document.activeElement === this.searchBox) this.searchBox.blur();
    for (const escape of this.escapes) if (escape()) return;
  }

  // ---- Theme and scrolling ----

  private storedTheme(): string | null {
    try {
      return localStorage.getItem("coffer-theme");
    } catch {
      return null;
    }
  }

  /** The reader's choice, else that of the system. */
  private applyTheme(): void {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset["theme"] = this.theme === "dark" || this.theme === "light" ? this.theme : system;
    document.dispatchEvent(new Event("coffer-theme"));
  }

  private toggleTheme(): void {
    const next = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("coffer-theme", next);
    } catch {
      // The choice holds until the page is closed.
    }
    this.theme = next;
    this.applyTheme();
    this.say(`${next} colors`);
  }

  private watchSections(): void {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme());
    const visible = new Map<Element, number>();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) visible.set(entry.target, entry.intersectionRect.height);
        /* The first that shows more than its end. */
        const best = this.sections.find((section) => (visible.get(section.element) ?? 0) > Math.min(90, section.element.clientHeight / 2));
        for (const link of this.nav.querySelectorAll("a")) {
          if (link.dataset["section"] === best?.id) link.setAttribute("aria-current", "true");
          else link.removeAttribute("aria-current");
        }
      },
      { rootMargin: "-100px 0px 0px 0px", threshold: [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1] },
    );
    for (const section of this.sections) observer.observe(section.element);
  }
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
