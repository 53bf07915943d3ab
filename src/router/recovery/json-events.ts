/**
 * Router events as JSON, turned from their MessagePack in slices.
 *
 * Shared   by all answers: routers that ask at once get the same dump, whose chunks are turned once.
 * One      chunk at a time is turned ahead of an answer; what an answer still lacks once it is fixed is
 *          not kept waiting behind those.
 * Owns     the text of a chunk as long as somebody has the chunk.
 */
import { MsgpackToJson } from './msgpack-to-json.ts';

/** Turned in a few milliseconds. */
const SLICE_BYTES = 64 << 10;

const COMMA = Buffer.from(',');

export class JsonEvents {
  readonly #turned = new WeakMap<Uint8Array, Promise<Buffer[]>>();
  #last: Promise<unknown> = Promise.resolve();

  /** Turns what will probably be part of an answer. */
  async turnAhead(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      await (this.#turned.get(chunk) ??
        this.#keep(
          chunk,
          this.#last.then(() => turnChunk(chunk)),
        ));
    }
  }

  /** The events of all chunks as pieces of JSON text, commas between them. */
  async turn(chunks: readonly Uint8Array[]): Promise<Buffer[]> {
    const pieces: Buffer[] = [];
    for (const chunk of chunks) {
      if (chunk.length === 0) continue;
      const turned = await (this.#turned.get(chunk) ?? turnChunk(chunk));
      if (pieces.length > 0) pieces.push(COMMA);
      for (const piece of turned) pieces.push(piece);
    }
    return pieces;
  }

  #keep(chunk: Uint8Array, turning: Promise<Buffer[]>): Promise<Buffer[]> {
    this.#turned.set(chunk, turning);
    this.#last = turning;
    return turning;
  }
}

async function turnChunk(chunk: Uint8Array): Promise<Buffer[]> {
  const values = new MsgpackToJson(chunk);
  const pieces: Buffer[] = [];
  while (!values.isAtEnd) {
    if (pieces.length > 0) await new Promise((resolve) => setImmediate(resolve));
    pieces.push(Buffer.from(values.next(SLICE_BYTES)));
  }
  return pieces;
}
