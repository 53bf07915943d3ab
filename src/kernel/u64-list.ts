/**
 * U64List: a packed list of u64 in kernel memory, low word before high word.
 *
 * Owns     its place in the arena until the next native batch is read; `KeptBlock` holds one longer.
 * Bigints  appear only in `of`, `at` and `toBigInts`, for logs, JSON and tests.
 */
import { arena } from './arena.ts';
import { ArenaPool } from './arena-pool.ts';
import { allocateBlock, type KernelBlock, releaseBlock, views, wasm } from './kernel.ts';

/** The u64 of two words, signed or not. */
export function u64Of(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

/** Epoch of a list that a KeptBlock holds. */
const KEPT = 0;

export class U64List {
  length: number;
  #address: number;
  #capacity: number;
  #epoch: number;

  /** An empty list with room for `capacity` entries. */
  constructor(capacity: number) {
    this.length = 0;
    this.#capacity = capacity;
    this.#address = arena.take(capacity * 8);
    this.#epoch = arena.epoch;
  }

  /** A list of the `length` entries at `address` in the arena, or of new ones, contents undefined. Pooled. */
  static pooled(length: number, address: number = arena.take(length * 8)): U64List {
    const list = pool.take();
    list.length = length;
    list.#capacity = length;
    list.#address = address;
    list.#epoch = arena.epoch;
    return list;
  }

  static of(...values: readonly bigint[]): U64List {
    const list = new U64List(values.length);
    for (const value of values) {
      list.push(Number(value & 0xffff_ffffn), Number((value >> 32n) & 0xffff_ffffn));
    }
    return list;
  }

  /** Where the entries lie. Throws where the list outlived its batch. */
  get address(): number {
    if (this.#epoch !== arena.epoch && this.#epoch !== KEPT) {
      throw new Error('A U64List was used after the next native batch had been read');
    }
    return this.#address;
  }

  /** Low word of an entry, signed. */
  lowAt(index: number): number {
    return views.i32[(this.address >>> 2) + index * 2] as number;
  }

  /** High word of an entry, signed. */
  highAt(index: number): number {
    return views.i32[(this.address >>> 2) + index * 2 + 1] as number;
  }

  at(index: number): bigint {
    return u64Of(this.lowAt(index), this.highAt(index));
  }

  toBigInts(): bigint[] {
    return Array.from({ length: this.length }, (_, index) => this.at(index));
  }

  push(low: number, high: number): void {
    this.#reserve(this.length + 1);
    const word = (this.address >>> 2) + this.length * 2;
    views.u32[word] = low;
    views.u32[word + 1] = high;
    this.length++;
  }

  append(other: U64List): void {
    this.#reserve(this.length + other.length);
    const from = other.address >>> 2;
    const words = other.length * 2;
    const to = (this.address >>> 2) + this.length * 2;
    if (words <= 16) {
      const { u32 } = views;
      for (let word = 0; word < words; word++) u32[to + word] = u32[from + word] as number;
    } else {
      views.u32.copyWithin(to, from, from + words);
    }
    this.length += other.length;
  }

  /** A view on `count` entries from `start`; both share memory. */
  slice(start: number, count: number): U64List {
    const list = new U64List(0);
    list.#address = this.address + start * 8;
    list.#epoch = this.#epoch;
    list.#capacity = count;
    list.length = count;
    return list;
  }

  /** Whether `parent` (where `hasParent`) or an entry occurs again in the list. */
  repeats(hasParent: boolean, parentLow: number, parentHigh: number): boolean {
    if (this.length === 1) {
      return hasParent && this.lowAt(0) === parentLow && this.highAt(0) === parentHigh;
    }
    const found = wasm.repeats(this.address, this.length, hasParent ? 1 : 0, parentLow, parentHigh);
    views.refresh();
    return found !== 0;
  }

  /** A copy of the entries in memory that outlives the batch. Only KeptBlock calls this. */
  copyTo(address: number, capacity: number): U64List {
    views.u8.copyWithin(address, this.address, this.address + this.length * 8);
    const copy = new U64List(0);
    copy.length = this.length;
    copy.#address = address;
    copy.#capacity = capacity;
    copy.#epoch = KEPT;
    return copy;
  }

  get isKept(): boolean {
    return this.#epoch === KEPT;
  }

  #reserve(length: number): void {
    if (length <= this.#capacity) return;
    const capacity = Math.max(length, this.#capacity * 2, 4);
    const from = this.address;
    const to = arena.take(capacity * 8);
    views.u8.copyWithin(to, from, from + this.length * 8);
    this.#address = to;
    this.#capacity = capacity;
    this.#epoch = arena.epoch;
  }
}

const pool = new ArenaPool(() => new U64List(0));

/** Memory for one list that has to outlive its native batch; holding another gives up the last. */
export class KeptBlock {
  #block: KernelBlock | null = null;

  /** The list itself where it is kept already. */
  hold(list: U64List): U64List {
    if (list.isKept) return list;
    const bytes = list.length * 8;
    if (this.#block === null || this.#block.bytes < bytes) {
      this.free();
      this.#block = allocateBlock(Math.max(bytes, 1024));
    }
    return list.copyTo(this.#block.address, this.#block.bytes / 8);
  }

  free(): void {
    if (this.#block !== null) releaseBlock(this.#block);
    this.#block = null;
  }
}
