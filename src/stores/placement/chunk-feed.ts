/** ChunkFeed: what one source of LMCache says of its chunks. See chunk-placements.ts. */
import type { RemovedChunk, StoredChunk } from './chunk.ts';
import type { ChunkPlacements } from './chunk-placements.ts';

export class ChunkFeed {
  readonly #placements: ChunkPlacements;
  readonly #feed: number;

  constructor(placements: ChunkPlacements, feed: number) {
    this.#placements = placements;
    this.#feed = feed;
  }

  stored(chunk: StoredChunk): void {
    this.#placements.store(this.#feed, chunk);
  }

  removed(chunk: RemovedChunk): void {
    this.#placements.remove(this.#feed, chunk);
  }

  /** All that it has said is withdrawn. */
  removedAll(): void {
    this.#placements.removeAll(this.#feed);
  }
}
