/** The data of a page: typed arrays by name, in inert script elements of the document or in a bundle from a server. */
import type { Live } from "./live";
import type { Json, Summary } from "./types";

interface Block {
  count: number;
  load: () => Promise<ArrayBuffer>;
}

interface DirectoryEntry {
  name: string;
  count: number;
  offset: number;
  size: number;
}

const ALIGNMENT = 8;

export class Chunks {
  private readonly decoded = new Map<string, Promise<ArrayBuffer>>();
  private strings: Promise<string[]> | undefined;

  private constructor(
    private readonly blocks: Map<string, Block>,
    /** The server that the page can ask; a report has none. */
    readonly live?: Live,
  ) {}

  /** Decoded when they are first used. */
  static embedded(root: Document): Chunks {
    const blocks = new Map<string, Block>();
    for (const block of root.querySelectorAll<HTMLScriptElement>('script[type="application/octet-stream"]'))
      blocks.set(block.dataset["name"] ?? "", { count: Number(block.dataset["count"] ?? 0), load: () => decode(block) });
    return new Chunks(blocks);
  }

  /** A bundle: the length of its directory, the directory as JSON, and the chunks at multiples of eight bytes. */
  static bundle(buffer: ArrayBuffer, live: Live): Chunks {
    const length = new DataView(buffer).getUint32(0, true);
    const directory = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as { chunks: DirectoryEntry[] };
    const first = Math.ceil((4 + length) / ALIGNMENT) * ALIGNMENT;
    const blocks = new Map<string, Block>();
    for (const { name, count, offset, size } of directory.chunks)
      blocks.set(name, { count, load: () => Promise.resolve(buffer.slice(first + offset, first + offset + size)) });
    return new Chunks(blocks, live);
  }

  has(name: string): boolean {
    return this.blocks.has(name);
  }

  count(name: string): number {
    return this.blocks.get(name)?.count ?? 0;
  }

  private bytes(name: string): Promise<ArrayBuffer> {
    let promise = this.decoded.get(name);
    if (!promise) {
      promise = this.load(name);
      this.decoded.set(name, promise);
    }
    return promise;
  }

  /** The first picture of a server lacks what needs a pass over the file. */
  private load(name: string): Promise<ArrayBuffer> {
    const block = this.blocks.get(name);
    if (block) return block.load();
    return this.live ? Promise.resolve(new ArrayBuffer(0)) : Promise.reject(new Error(`the page has no chunk ${name}`));
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

async function decode(block: HTMLScriptElement): Promise<ArrayBuffer> {
  const binary = atob(block.textContent ?? "");
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  if (block.dataset["codec"] === "none") return bytes.buffer;
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(plain).arrayBuffer();
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
