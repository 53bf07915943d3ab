/**
 * Orphans: chunks that wait for their parent to get its place, and from then on for their turn.
 *
 * Turn     any number may wait for one chunk, such as the prompt that all sequences begin with: they come a portion at
 *          a time, each when it is asked for.
 */
import { blockCountOf, type Chunk } from './chunk.ts';

const MAX_PORTION_BLOCKS = 1024;

export interface OrphansOptions {
  /** It is this chunk's turn; that may let others follow. It may have given way meanwhile. */
  readonly onTurn: (chunk: Chunk) => void;
  /** Calls back once it is the turn of what can wait. */
  readonly defer: (callback: () => void) => void;
}

export class Orphans {
  readonly #options: OrphansOptions;
  readonly #byParent = new Map<string, Set<Chunk>>();
  readonly #ready: Chunk[] = [];
  #isDeferred = false;

  constructor(options: OrphansOptions) {
    this.#options = options;
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
    this.#defer();
  }

  #defer(): void {
    if (this.#isDeferred || this.#ready.length === 0) return;
    this.#isDeferred = true;
    this.#options.defer(() => {
      this.#isDeferred = false;
      this.#takePortion();
      this.#defer();
    });
  }

  #takePortion(): void {
    for (let blocks = 0; blocks < MAX_PORTION_BLOCKS; ) {
      const chunk = this.#ready.pop();
      if (chunk === undefined) return;
      blocks += blockCountOf(chunk);
      this.#options.onTurn(chunk);
    }
  }
}
