/** The data of a page: typed arrays in inert script elements, decoded when they are first used. */
import type { Json, Summary } from "./types";

export class Chunks {
  private readonly blocks = new Map<string, HTMLScriptElement>();
  private readonly decoded = new Map<string, Promise<ArrayBuffer>>();
  private strings: Promise<string[]> | undefined;

  constructor(root: Document) {
    for (const block of root.querySelectorAll<HTMLScriptElement>('script[type="application/octet-stream"]'))
      this.blocks.set(block.dataset["name"] ?? "", block);
  }

  has(name: string): boolean {
    return this.blocks.has(name);
  }

  count(name: string): number {
    return Number(this.blocks.get(name)?.dataset["count"] ?? 0);
  }

  private bytes(name: string): Promise<ArrayBuffer> {
    let promise = this.decoded.get(name);
    if (!promise) {
      promise = this.decode(name);
      this.decoded.set(name, promise);
    }
    return promise;
  }

  private async decode(name: string): Promise<ArrayBuffer> {
    const block = this.blocks.get(name);
    if (!block) throw new Error(`the page has no chunk ${name}`);
    const binary = atob(block.textContent ?? "");
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    if (block.dataset["codec"] === "none") return bytes.buffer;
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(plain).arrayBuffer();
  }

  async f64(name: string): Promise<Float64Array> {
    return new Float64Array(await this.bytes(name));
  }

  async f32(name: string): Promise<Float32Array> {
    return new Float32Array(await this.bytes(name));
  }

  async u32(name: string): Promise<Uint32Array> {
    return new Uint32Array(await this.bytes(name));
  }

  async u8(name: string): Promise<Uint8Array> {
    return new Uint8Array(await this.bytes(name));
  }

  async json(name: string): Promise<Json> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(name))) as Json;
  }

  async summary(): Promise<Summary> {
    return (await this.json("summary")) as unknown as Summary;
  }

  /** The texts that columns refer to by number. */
  texts(): Promise<string[]> {
    this.strings ??= this.bytes("texts").then(splitTexts);
    return this.strings;
  }
}

function splitTexts(buffer: ArrayBuffer): string[] {
  const view = new DataView(buffer);
  const count = view.getUint32(0, true);
  const first = 4 + 4 * count;
  const decoder = new TextDecoder();
  const texts: string[] = [];
  for (let i = 0, start = 0; i < count; i++) {
    const end = view.getUint32(4 + 4 * i, true);
    texts.push(decoder.decode(new Uint8Array(buffer, first + start, end - start)));
    start = end;
  }
  return texts;
}
