/**
 * An engine's cache that stays as large as it is: sequences of up to 64 blocks, which grow by single blocks and are evicted,
 * last block first, when they are full. Which sequence is next is random, so that tables and trees are met all over.
 */
import { BatchWriter } from './batch-writer.mjs';
import { seeded } from './seeded.mjs';

const BLOCKS_A_SEQUENCE = 64;
const STORES_A_STEP = 16;
const FILLED_A_BATCH = 8;
const VOCABULARY = 150_000;

export class LiveBlocks {
  #random;
  #writer = new BatchWriter();
  #dpRank;
  #blockSize;
  #lengths;
  #low;
  #high;

  /** Holds about `blocks`, between one and 64 of each sequence. */
  constructor(blocks, { blockSize = 16, dpRank = 0, seed = 1 } = {}) {
    const sequences = Math.ceil(blocks / ((1 + BLOCKS_A_SEQUENCE) / 2));
    this.#random = seeded(seed);
    this.#dpRank = dpRank;
    this.#blockSize = blockSize;
    this.#lengths = new Uint8Array(sequences);
    this.#low = new Uint32Array(sequences * BLOCKS_A_SEQUENCE);
    this.#high = new Uint32Array(sequences * BLOCKS_A_SEQUENCE);
  }

  get size() {
    return this.#lengths.reduce((sum, length) => sum + length, 0);
  }

  /** The batches that store what is held at first; one event a sequence. */
  *fill() {
    for (let sequence = 0; sequence < this.#lengths.length; ) {
      const end = Math.min(sequence + FILLED_A_BATCH, this.#lengths.length);
      this.#writer.start(end - sequence);
      for (; sequence < end; sequence++) {
        const length = 1 + (this.#random() % BLOCKS_A_SEQUENCE);
        const hashes = Array.from({ length }, () => this.#grow(sequence));
        this.#store(hashes, null);
      }
      yield this.#writer.finish(this.#dpRank);
    }
  }

  /** Batches of single stores, and of the evictions that they need; `{frames, blocks}`. */
  steps(count) {
    return Array.from({ length: count }, () => this.#step());
  }

  #step() {
    const chosen = Array.from(
      { length: STORES_A_STEP },
      () => this.#random() % this.#lengths.length,
    );
    const full = [...new Set(chosen)].filter((one) => this.#lengths[one] === BLOCKS_A_SEQUENCE);
    // Chosen often enough, a sequence may be full within the step: it has to wait.
    const growing = chosen.filter((one, at) => {
      const before = chosen.slice(0, at).filter((other) => other === one).length;
      return full.includes(one) || this.#lengths[one] + before < BLOCKS_A_SEQUENCE;
    });
    const removed = full.length * BLOCKS_A_SEQUENCE;
    this.#writer.start(removed + growing.length);
    for (const one of full) this.#evict(one);
    for (const one of growing) {
      const parent = this.#lengths[one] === 0 ? null : this.#hashAt(one, this.#lengths[one] - 1);
      this.#store([this.#grow(one)], parent);
    }
    return { frames: this.#writer.finish(this.#dpRank), blocks: removed + growing.length };
  }

  #evict(sequence) {
    for (let at = this.#lengths[sequence] - 1; at >= 0; at--) {
      this.#writer.removed(this.#hashAt(sequence, at));
    }
    this.#lengths[sequence] = 0;
  }

  #grow(sequence) {
    const at = this.#lengths[sequence]++;
    this.#low[sequence * BLOCKS_A_SEQUENCE + at] = this.#random();
    this.#high[sequence * BLOCKS_A_SEQUENCE + at] = this.#random();
    return this.#hashAt(sequence, at);
  }

  #hashAt(sequence, at) {
    const place = sequence * BLOCKS_A_SEQUENCE + at;
    return { low: this.#low[place], high: this.#high[place] };
  }

  #store(hashes, parent) {
    const length = hashes.length * this.#blockSize;
    const tokens = Array.from({ length }, () => this.#random() % VOCABULARY);
    this.#writer.stored(hashes, parent, tokens, this.#blockSize);
  }
}
