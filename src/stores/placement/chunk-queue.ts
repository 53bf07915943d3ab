/** ChunkQueue: chunks that wait for their turn, of which a portion is taken at a time. */
import { blockCountOf, type Chunk } from './chunk.ts';

const MAX_PORTION_BLOCKS = 1024;

export interface ChunkQueueOptions {
  /** It is this chunk's turn; that may let others follow. It may have given way meanwhile. */
  readonly onTurn: (chunk: Chunk) => void;
  /** Calls back once it is the turn of what can wait. */
  readonly defer: (callback: () => void) => void;
}

export class ChunkQueue {
  readonly #options: ChunkQueueOptions;
  readonly #chunks: Chunk[] = [];
  #isDeferred = false;

  constructor(options: ChunkQueueOptions) {
    this.#options = options;
  }

  push(chunk: Chunk): void {
    this.#chunks.push(chunk);
    this.#defer();
  }

  #defer(): void {
    if (this.#isDeferred || this.#chunks.length === 0) return;
    this.#isDeferred = true;
    this.#options.defer(() => {
      this.#isDeferred = false;
      this.#takePortion();
      this.#defer();
    });
  }

  #takePortion(): void {
    for (let blocks = 0; blocks < MAX_PORTION_BLOCKS; ) {
      const chunk = this.#chunks.pop();
      if (chunk === undefined) return;
      blocks += Math.max(1, blockCountOf(chunk));
      this.#options.onTurn(chunk);
    }
  }
}
