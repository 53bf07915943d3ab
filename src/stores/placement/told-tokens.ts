/**
 * ToldTokens: tokens of chunks that nobody has stored yet, and chunks that wait for theirs, by hash.
 *
 * Bounds   chunks and tokens of them all; the oldest go, and are counted.
 */
import type { Chunk, ChunkTokens } from './chunk.ts';

/** As many as LMCache's own event stream keeps. */
const MAX_CHUNKS = 65_536;
const MAX_TOKENS = 16 << 20;

interface Told extends ChunkTokens {
  readonly tokenIds: Uint32Array;
}

export class ToldTokens {
  /** Chunks whose tokens went for want of room. */
  forgotten = 0;
  readonly #told = new Map<string, Told>();
  readonly #waiting = new Map<string, Set<Chunk>>();
  #tokens = 0;

  get(hashKey: string): ChunkTokens | null {
    return this.#told.get(hashKey) ?? null;
  }

  set(hashKey: string, { hash, parentHash, tokenIds, tokenOffset }: ChunkTokens): void {
    this.#delete(hashKey);
    const told = { hash, parentHash, tokenIds: Uint32Array.from(tokenIds), tokenOffset };
    this.#told.set(hashKey, told);
    this.#tokens += tokenIds.length;
    for (const oldest of this.#told.keys()) {
      if (this.#told.size <= MAX_CHUNKS && this.#tokens <= MAX_TOKENS) break;
      this.#delete(oldest);
      this.forgotten++;
    }
  }

  wait(hashKey: string, chunk: Chunk): void {
    this.#waiting.set(hashKey, (this.#waiting.get(hashKey) ?? new Set()).add(chunk));
  }

  stopWaiting(hashKey: string, chunk: Chunk): void {
    const chunks = this.#waiting.get(hashKey);
    chunks?.delete(chunk);
    if (chunks?.size === 0) this.#waiting.delete(hashKey);
  }

  waitingFor(hashKey: string): readonly Chunk[] {
    return [...(this.#waiting.get(hashKey) ?? [])];
  }

  #delete(hashKey: string): void {
    const told = this.#told.get(hashKey);
    if (told === undefined) return;
    this.#tokens -= told.tokenIds.length;
    this.#told.delete(hashKey);
  }
}
