/** The server of a view: its token, questions about parts of the file, and how far it has read. */
import { Chunks } from "./chunks";
import { append, el } from "./dom";
import type { JsonMap } from "./types";

export interface State {
  stage: "reading" | "checking" | "done";
  permille: number;
}

const TOKEN = "coffer-token";
/** When the server answers at once, because other pages wait already. */
const PAUSE_MS = 2000;

export class Live {
  private constructor(private readonly token: string) {}

  /** The token is in the fragment of the address, which browsers do not send; a page that is loaded again has kept it. */
  static async connect(): Promise<Live> {
    const given = new URLSearchParams(location.hash.slice(1));
    let token = given.get("token");
    const once = given.get("once");
    if (once) {
      const answer = await fetch("/token", { headers: { "X-Coffer-Once": once } });
      if (!answer.ok) throw new Error(await answer.text());
      token = await answer.text();
    }
    if (token) {
      sessionStorage.setItem(TOKEN, token);
      history.replaceState(null, "", location.pathname);
    }
    token ??= sessionStorage.getItem(TOKEN);
    if (!token) throw new Error("the address has no token: open the one that coffer printed");
    return new Live(token);
  }

  private async get(path: string, args: Record<string, string | number>, signal?: AbortSignal): Promise<Response> {
    const query = new URLSearchParams(Object.entries(args).map(([key, value]) => [key, String(value)])).toString();
    const answer = await fetch(query ? `${path}?${query}` : path, { headers: { "X-Coffer-Token": this.token }, ...(signal ? { signal } : {}) });
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }

  async ask(question: string, args: Record<string, string | number> = {}, signal?: AbortSignal): Promise<Chunks> {
    const answer = await this.get(`/ask/${question}`, args, signal);
    return Chunks.bundle(await answer.arrayBuffer(), this);
  }

  /** Calls with every change, until the server is gone. One request waits all the time: the server knows that the page is open. */
  async watch(changed: (state: State) => Promise<void>): Promise<void> {
    let known: State | undefined;
    for (;;) {
      const begin = performance.now();
      const answer = await this.get("/state", known ? { stage: known.stage, permille: known.permille } : {});
      const state = (await answer.json()) as State;
      const same = state.stage === known?.stage && state.permille === known.permille;
      if (!same) await changed(state);
      if (same && performance.now() - begin < PAUSE_MS) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      known = state;
    }
  }
}

/** The numbers of an answer. */
export async function answerView(answer: Chunks): Promise<JsonMap> {
  return ((await answer.json("answer")) as { view: JsonMap }).view;
}

/** Only the newest question counts: an older one is given up. */
export class Newest {
  private running: AbortController | undefined;

  cancel(): void {
    this.running?.abort();
    this.running = undefined;
  }

  /** undefined when a newer one was asked meanwhile. */
  async run<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.cancel();
    const mine = new AbortController();
    this.running = mine;
    try {
      const answer = await ask(mine.signal);
      return mine.signal.aborted ? undefined : answer;
    } catch (problem) {
      if (mine.signal.aborted) return undefined;
      throw problem;
    }
  }
}

/** What is being read, at the bottom of the window. */
export class ReadingBar {
  readonly element = el("div", { class: "reading", role: "status" });
  private readonly bar = el("progress", { "aria-label": "Progress of reading the file" });
  private readonly words = el("span");

  constructor() {
    this.bar.max = 1000;
    append(this.element, this.bar, this.words);
  }

  show({ stage, permille }: State): void {
    this.element.hidden = stage === "done";
    this.bar.hidden = false;
    if (permille > 0) this.bar.value = permille;
    else this.bar.removeAttribute("value");
    const share = permille > 0 ? ` ${Math.floor(permille / 10)} %` : "";
    this.say(stage === "reading" ? `Reading the file…${share} The first picture shows what is known at once.` : `Checking the file…${share}`);
  }

  fail(text: string): void {
    this.element.hidden = false;
    this.bar.hidden = true;
    this.say(text);
  }

  private say(text: string): void {
    this.words.replaceChildren();
    append(this.words, text);
  }
}
