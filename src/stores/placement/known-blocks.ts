/**
 * KnownBlocks: what an engine's stream has shown of each block: the router's hash of its tokens, and the
 * block before it. It outlives the block: a store holds what the engine has given up.
 *
 * Memory   packed, up to `maxBlocks`; then the oldest that is not placed gives way. Where all are placed a
 *          new one is not kept, and counted.
 * Ambiguous a hash shown with other tokens or another parent is never placed again: which one a key means
 *          cannot be told.
 */
const MIN_BLOCKS = 1024;
const SLOTS_PER_BLOCK = 2;
/** Entries looked at for one that may give way. */
const MAX_LOOKED = 64;

const HAS_PARENT = 1;
const PLACED = 2;
const AMBIGUOUS = 4;

/** Columns of a block's row. */
const ROW_WORDS = 6;

export interface ShownBlock {
  readonly hashLow: number;
  readonly hashHigh: number;
  readonly tokensLow: number;
  readonly tokensHigh: number;
  readonly hasParent: boolean;
  readonly parentLow: number;
  readonly parentHigh: number;
}

export class KnownBlocks {
  /** Blocks that found no room. */
  unkept = 0;
  placedCount = 0;
  readonly #maxBlocks: number;
  #size = 0;
  #cursor = 0;
  /** Entry + 1 by hash, linear probing; 0 where there is none. */
  #slots = new Uint32Array(MIN_BLOCKS * SLOTS_PER_BLOCK);
  /** hash low, hash high, tokens low, tokens high, parent low, parent high. */
  #rows = new Int32Array(MIN_BLOCKS * ROW_WORDS);
  #flags = new Uint8Array(MIN_BLOCKS);

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  get size(): number {
    return this.#size;
  }

  /** -1 where the hash was never shown, or has given way. */
  find(low: number, high: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#home(low, high); ; slot = (slot + 1) & mask) {
      const entry = (this.#slots[slot] as number) - 1;
      if (entry < 0) return -1;
      if (this.#word(entry, 0) === (low | 0) && this.#word(entry, 1) === (high | 0)) return entry;
    }
  }

  /** True where that makes a difference to whether the block can be placed. */
  show(block: ShownBlock): boolean {
    const known = this.find(block.hashLow, block.hashHigh);
    if (known >= 0) return this.#compare(known, block);
    const entry = this.#takeEntry();
    if (entry < 0) return false;
    const { hashLow, hashHigh, tokensLow, tokensHigh, parentLow, parentHigh } = block;
    const words = [hashLow, hashHigh, tokensLow, tokensHigh, parentLow, parentHigh];
    this.#rows.set(words, entry * ROW_WORDS);
    this.#flags[entry] = block.hasParent ? HAS_PARENT : 0;
    this.#link(entry);
    return true;
  }

  /** Of an entry that `find` gave. */
  block(entry: number): ShownBlock {
    return {
      hashLow: this.#word(entry, 0),
      hashHigh: this.#word(entry, 1),
      tokensLow: this.#word(entry, 2),
      tokensHigh: this.#word(entry, 3),
      hasParent: this.#has(entry, HAS_PARENT),
      parentLow: this.#word(entry, 4),
      parentHigh: this.#word(entry, 5),
    };
  }

  isPlaced(entry: number): boolean {
    return this.#has(entry, PLACED);
  }

  canBePlaced(entry: number): boolean {
    return !this.#has(entry, AMBIGUOUS);
  }

  setPlaced(entry: number, isPlaced: boolean): void {
    if (this.#has(entry, PLACED) === isPlaced) return;
    this.placedCount += isPlaced ? 1 : -1;
    this.#flags[entry] = (this.#flags[entry] as number) ^ PLACED;
  }

  /** Makes every block one that is not placed, and tells of each that was: in the order they were shown. */
  unplaceAll(onPlaced: (low: number, high: number) => void): void {
    for (let step = 0; step < this.#size; step++) {
      const entry = (this.#cursor + step) % this.#size;
      if (!this.#has(entry, PLACED)) continue;
      this.setPlaced(entry, false);
      onPlaced(this.#word(entry, 0), this.#word(entry, 1));
    }
  }

  #compare(entry: number, block: ShownBlock): boolean {
    if (this.#has(entry, AMBIGUOUS)) return false;
    const isSame =
      this.#word(entry, 2) === (block.tokensLow | 0) &&
      this.#word(entry, 3) === (block.tokensHigh | 0) &&
      this.#has(entry, HAS_PARENT) === block.hasParent &&
      this.#word(entry, 4) === (block.parentLow | 0) &&
      this.#word(entry, 5) === (block.parentHigh | 0);
    if (isSame) return false;
    this.#flags[entry] = (this.#flags[entry] as number) | AMBIGUOUS;
    return true;
  }

  /** -1 where there is no room. */
  #takeEntry(): number {
    if (this.#size < this.#maxBlocks) {
      if (this.#size === this.#flags.length) this.#grow();
      return this.#size++;
    }
    for (let looked = 0; looked < MAX_LOOKED; looked++) {
      const entry = this.#cursor;
      this.#cursor = (this.#cursor + 1) % this.#size;
      if (this.#has(entry, PLACED)) continue;
      this.#unlink(entry);
      return entry;
    }
    this.unkept++;
    return -1;
  }

  #grow(): void {
    const count = this.#flags.length * 2;
    const rows = new Int32Array(count * ROW_WORDS);
    rows.set(this.#rows);
    const flags = new Uint8Array(count);
    flags.set(this.#flags);
    this.#rows = rows;
    this.#flags = flags;
    this.#slots = new Uint32Array(count * SLOTS_PER_BLOCK);
    for (let entry = 0; entry < this.#size; entry++) this.#link(entry);
  }

  #link(entry: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#homeOf(entry);
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = entry + 1;
  }

  #unlink(entry: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = this.#homeOf(entry);
    while (slots[gap] !== entry + 1) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const home = this.#homeOf((slots[slot] as number) - 1);
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots[gap] = slots[slot] as number;
      gap = slot;
    }
    slots[gap] = 0;
  }

  #homeOf(entry: number): number {
    return this.#home(this.#word(entry, 0), this.#word(entry, 1));
  }

  /** Engines' hashes are even; old ones are small numbers, so both words are mixed. */
  #home(low: number, high: number): number {
    let mixed = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high, 0xc2b2ae35);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0x27d4eb2f);
    return ((mixed ^ (mixed >>> 15)) >>> 0) & (this.#slots.length - 1);
  }

  #word(entry: number, column: number): number {
    return this.#rows[entry * ROW_WORDS + column] as number;
  }

  #has(entry: number, flag: number): boolean {
    return ((this.#flags[entry] as number) & flag) !== 0;
  }
}
