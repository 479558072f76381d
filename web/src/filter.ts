/** Conditions on the fields of samples, as `coffer head --where` has them: a form, its chips, and the command. */
import { append, button, el, name } from "./dom";
import { shell as quote } from "./format";

export type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "~" | "present" | "absent";

export interface Condition {
  field: number;
  operator: Operator;
  value: string;
}

export interface FilterField {
  name: string;
  type: string;
}

const LABELS: Record<Operator, string> = { "=": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥", contains: "contains", "~": "matches", present: "is present", absent: "is absent" };

export function operatorsOf(field: FilterField): Operator[] {
  if (field.type === "int" || field.type === "float") return ["=", "!=", "<", "<=", ">", ">="];
  if (field.type === "text") return ["contains", "=", "!=", "~", "present", "absent"];
  return ["present", "absent"];
}

/** The characters that a shell pattern gives a meaning. */
function escapePattern(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

function words(condition: Condition, fields: FilterField[]): string {
  const field = fields[condition.field]?.name ?? "";
  if (condition.operator === "present") return field;
  if (condition.operator === "absent") return `!${field}`;
  if (condition.operator === "contains") return `${field}~*${escapePattern(condition.value)}*`;
  return `${field}${condition.operator}${condition.value}`;
}

/** " --where 'label=3'" for each condition. */
export function commandPart(conditions: Condition[], fields: FilterField[]): string {
  return conditions.map((condition) => ` --where ${quote(words(condition, fields))}`).join("");
}

function matchesPattern(text: string, pattern: string): boolean {
  /* Without recursion: the last star takes one more character when what follows it does not fit. */
  let at = 0;
  let place = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    const sign = pattern[place];
    if (sign === "*") {
      star = place++;
      resume = at;
    } else if (sign === "?" || (sign === "\\" ? pattern[place + 1] === text[at] : sign === text[at] && sign !== undefined)) {
      place += sign === "\\" ? 2 : 1;
      at++;
    } else if (star >= 0) {
      place = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[place] === "*") place++;
  return place >= pattern.length;
}

const ABSENT = "–";

/** Whether a value meets the condition. text : as the page shows it. */
export function meets(condition: Condition, text: string, number: number | undefined): boolean {
  const { operator, value } = condition;
  if (operator === "present") return text !== ABSENT;
  if (operator === "absent") return text === ABSENT;
  if (number === undefined) {
    if (text === ABSENT) return operator === "!=";
    if (operator === "contains") return text.includes(value);
    if (operator === "~") return matchesPattern(text, value);
    return operator === "=" ? text === value : text !== value;
  }
  const wanted = Number(value);
  switch (operator) {
    case "=":
      return number === wanted;
    case "!=":
      return number !== wanted;
    case "<":
      return number < wanted;
    case "<=":
      return number <= wanted;
    case ">":
      return number > wanted;
    default:
      return number >= wanted;
  }
}

export class Filter {
  readonly element = el("form", { class: "filter", "aria-label": "Filter by value" });
  readonly result = el("p", { class: "readout", role: "status" });
  conditions: Condition[] = [];
  private readonly field = el("select", { "aria-label": "Field" });
  private readonly operator = el("select", { "aria-label": "Comparison" });
  private readonly value = el("input", { type: "text", "aria-label": "Value", placeholder: "value" });
  private readonly chips = el("span", { class: "filter-chips" });

  constructor(
    private readonly fields: FilterField[],
    private readonly changed: () => void,
  ) {
    fields.forEach((field, index) => this.field.append(option(String(index), field.name)));
    this.field.value = String(Math.max(0, fields.findIndex((field) => operatorsOf(field).length > 2)));
    this.field.addEventListener("change", () => this.offer());
    this.operator.addEventListener("change", () => this.showValue());
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.add();
    });
    const submit = el("button", { type: "submit", class: "button", title: "Show only samples that meet this condition" }, "filter");
    append(this.element, this.field, this.operator, this.value, submit, this.chips);
    this.offer();
  }

  /** Conditions from an address: only those that the form could have made. */
  restore(text: string): void {
    let given: unknown;
    try {
      given = JSON.parse(text);
    } catch {
      return;
    }
    if (!Array.isArray(given)) return;
    this.conditions = (given as unknown[]).filter((item): item is Condition => this.isCondition(item));
    this.show();
  }

  private isCondition(item: unknown): item is Condition {
    if (typeof item !== "object" || item === null) return false;
    const { field, operator, value } = item as Partial<Condition>;
    const known = typeof field === "number" ? this.fields[field] : undefined;
    return known !== undefined && operator !== undefined && operatorsOf(known).includes(operator) && typeof value === "string";
  }

  private chosenField(): number {
    return Number(this.field.value);
  }

  private offer(): void {
    const field = this.fields[this.chosenField()];
    this.operator.replaceChildren(...(field ? operatorsOf(field) : []).map((operator) => option(operator, LABELS[operator])));
    this.showValue();
  }

  private showValue(): void {
    this.value.hidden = this.operator.value === "present" || this.operator.value === "absent";
    const type = this.fields[this.chosenField()]?.type;
    this.value.inputMode = type === "int" || type === "float" ? "decimal" : "text";
  }

  private add(): void {
    const field = this.fields[this.chosenField()];
    const value = this.value.value.trim();
    if (!field) return;
    const numeric = field.type === "int" || field.type === "float";
    const wrong = numeric && (value === "" || Number.isNaN(Number(value)));
    this.value.setCustomValidity(wrong ? "a number" : "");
    if (wrong) {
      this.value.reportValidity();
      return;
    }
    this.conditions.push({ field: this.chosenField(), operator: this.operator.value as Operator, value: this.value.hidden ? "" : value });
    this.show();
  }

  private show(): void {
    const chips = this.conditions.map((condition, index) => {
      const chip = button("", "Remove this condition", () => {
        this.conditions.splice(index, 1);
        this.show();
      }, "button chip-button");
      append(chip, name(this.fields[condition.field]?.name ?? ""), ` ${LABELS[condition.operator]} `, name(condition.value), " ×");
      return chip;
    });
    this.chips.replaceChildren(...chips);
    this.value.setCustomValidity("");
    this.changed();
  }
}

function option(value: string, label: string): HTMLOptionElement {
  const element = el("option", {}, label);
  element.value = value;
  return element;
}
