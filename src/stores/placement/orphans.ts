/**
 * Orphans: chunks that wait for their parent to get its place, and from then on for their turn.
 *
 * Turn     any number may wait for one chunk, such as the prompt that all sequences begin with: they come a portion at
 *          a time, each when it is asked for.
 */
import type { Chunk } from './chunk.ts';
import { ChunkQueue, type ChunkQueueOptions } from './chunk-queue.ts';

export class Orphans {
  readonly #byParent = new Map<string, Set<Chunk>>();
  readonly #ready: ChunkQueue;

  constructor(options: ChunkQueueOptions) {
    this.#ready = new ChunkQueue(options);
  }

  wait(parentKey: string, chunk: Chunk): void {
    this.#byParent.set(parentKey, (this.#byParent.get(parentKey) ?? new Set()).add(chunk));
  }

  forget(chunk: Chunk): void {
    const { parentKey } = chunk;
    if (parentKey === null || parentKey === undefined) return;
    const siblings = this.#byParent.get(parentKey);
    siblings?.delete(chunk);
    if (siblings?.size === 0) this.#byParent.delete(parentKey);
  }

  /** The chunk has got its place. */
  release({ key }: Chunk): void {
    for (const orphan of this.#byParent.get(key) ?? []) this.#ready.push(orphan);
    this.#byParent.delete(key);
  }
}
