/**
 * Router events as JSON, turned from their MessagePack in slices.
 *
 * Owns     what it has turned so far: an answer that is taken a second time, as late as possible, then
 *          costs only what came between.
 */
import { MsgpackToJson } from './msgpack-to-json.ts';

/** Turned in a few milliseconds. */
const SLICE_BYTES = 64 << 10;

const COMMA = Buffer.from(',');

export class JsonEvents {
  readonly #turned = new Map<Uint8Array, Buffer[]>();

  /** The events of all chunks as pieces of JSON text, commas between them. */
  async turn(chunks: readonly Uint8Array[]): Promise<Buffer[]> {
    const pieces: Buffer[] = [];
    for (const chunk of chunks) {
      if (chunk.length === 0) continue;
      const turned = this.#turned.get(chunk) ?? (await turnChunk(chunk));
      this.#turned.set(chunk, turned);
      if (pieces.length > 0) pieces.push(COMMA);
      for (const piece of turned) pieces.push(piece);
    }
    return pieces;
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
