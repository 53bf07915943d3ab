/**
 * ChunkFeed: what one source of LMCache says of its chunks. See chunk-placements.ts.
 *
 * Withdraws what it has said of very many chunks over several turns. Who comes in between is not mistaken: a chunk
 *          that is stored meanwhile is withdrawn first, and then passed by.
 */
import type { Chunk, ChunkTier, RemovedChunk, StoredChunk } from './chunk.ts';
import type { ChunkPlacements } from './chunk-placements.ts';

/** Chunks that are looked at in one turn. */
const MAX_PORTION_CHUNKS = 256;
const TIERS = ['l1', 'l2'] as const;

/** Whether the source holds the chunk there by now. */
export type ChunkHeld = (chunk: Chunk, tier: ChunkTier) => boolean;

export class ChunkFeed {
  /** A part of what it has said is still to be withdrawn. */
  isWithdrawing = false;
  readonly #placements: ChunkPlacements;
  /** That say that a chunk is held there. */
  readonly #bits: Readonly<Record<ChunkTier, number>>;
  #isHeld: ChunkHeld = () => false;
  /** Over all chunks that are known; null: it has not begun. */
  #walk: Iterator<Chunk> | null = null;
  /** It has to begin again at its end, as more was withdrawn on the way. */
  #isWanted = false;
  /** Stored since the last withdrawal. */
  #spared = new WeakSet<Chunk>();
  #isStopped = false;

  constructor(placements: ChunkPlacements, bits: Readonly<Record<ChunkTier, number>>) {
    this.#placements = placements;
    this.#bits = bits;
  }

  stored(chunk: StoredChunk): void {
    if (this.#placements.storageTierOf(chunk.tier) === null) return;
    const bit = this.#bits[chunk.tier];
    const before = this.isWithdrawing ? this.#placements.find(chunk) : null;
    if (before !== null && !this.#spared.has(before)) {
      this.#withdraw(before);
      this.#placements.release(before, bit);
    }
    this.#placements.store(bit, chunk);
    const after = this.isWithdrawing ? this.#placements.find(chunk) : null;
    if (after !== null) this.#spared.add(after);
  }

  removed(chunk: RemovedChunk): void {
    const known = this.#placements.find(chunk);
    if (known !== null) this.#placements.release(known, this.#bits[chunk.tier]);
  }

  /** All that it has said is withdrawn. */
  removedAll(): void {
    this.removedUnless(() => false);
  }

  /** The same but for chunks of which `isHeld` says, each time it is asked, that they are held by then. */
  removedUnless(isHeld: ChunkHeld): void {
    if (this.#isStopped) return;
    this.#isHeld = isHeld;
    this.#spared = new WeakSet();
    this.#isWanted = true;
    if (this.isWithdrawing) return;
    this.isWithdrawing = true;
    this.defer(() => this.#takePortion());
  }

  /** Calls back once it is the turn of what can wait, unless it was stopped. */
  defer(portion: () => void): void {
    this.#placements.defer(() => {
      if (!this.#isStopped) portion();
    });
  }

  /** What has not been withdrawn by now never is. */
  stop(): void {
    this.#isStopped = true;
    this.isWithdrawing = false;
    this.#walk = null;
  }

  #takePortion(): void {
    if (this.#walk === null) {
      this.#walk = this.#placements.all()[Symbol.iterator]();
      this.#isWanted = false;
    }
    for (let looked = 0; looked < MAX_PORTION_CHUNKS && this.#walk !== null; looked++) {
      const { value, done } = this.#walk.next();
      if (done === true) this.#walk = null;
      else if (!this.#spared.has(value)) this.#withdraw(value);
    }
    this.isWithdrawing = this.#walk !== null || this.#isWanted;
    if (this.isWithdrawing) this.defer(() => this.#takePortion());
  }

  #withdraw(chunk: Chunk): void {
    for (const tier of TIERS) {
      const bit = this.#bits[tier];
      if ((chunk.holders & bit) === 0 || this.#isHeld(chunk, tier)) continue;
      this.#placements.release(chunk, bit);
    }
  }
}
