/**
 * U64Map: u64 → u64, packed, for tables with an entry a block.
 *
 * Memory   17 bytes a slot, and twice to four times as many slots as entries.
 * Words    are signed; an entry's number holds until the next `set` or `delete`.
 */
const MIN_SLOTS = 64;
/** Key low, key high, value low, value high. */
const WORDS = 4;

export class U64Map {
  #size = 0;
  #slots = new Int32Array(MIN_SLOTS * WORDS);
  #used = new Uint8Array(MIN_SLOTS);

  get size(): number {
    return this.#size;
  }

  /** The entry of the key; -1 where there is none. */
  find(low: number, high: number): number {
    const slot = this.#slotOf(low | 0, high | 0);
    return this.#used[slot] === 1 ? slot : -1;
  }

  valueLow(entry: number): number {
    return this.#slots[entry * WORDS + 2] as number;
  }

  valueHigh(entry: number): number {
    return this.#slots[entry * WORDS + 3] as number;
  }

  set(low: number, high: number, valueLow: number, valueHigh: number): void {
    if (this.#size * 2 >= this.#used.length) this.#grow();
    const slot = this.#slotOf(low | 0, high | 0);
    if (this.#used[slot] === 0) {
      this.#used[slot] = 1;
      this.#size++;
    }
    this.#slots.set([low, high, valueLow, valueHigh], slot * WORDS);
  }

  delete(low: number, high: number): void {
    let gap = this.find(low, high);
    if (gap < 0) return;
    this.#size--;
    const mask = this.#used.length - 1;
    // Entries behind the gap move up, where their probes would else end at it.
    for (let slot = (gap + 1) & mask; this.#used[slot] === 1; slot = (slot + 1) & mask) {
      const home = this.#home(this.#word(slot, 0), this.#word(slot, 1));
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      this.#slots.copyWithin(gap * WORDS, slot * WORDS, (slot + 1) * WORDS);
      gap = slot;
    }
    this.#used[gap] = 0;
  }

  /** Where the key is, or would be. */
  #slotOf(low: number, high: number): number {
    const mask = this.#used.length - 1;
    let slot = this.#home(low, high);
    while (
      this.#used[slot] === 1 &&
      (this.#word(slot, 0) !== low || this.#word(slot, 1) !== high)
    ) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const slots = this.#slots;
    const used = this.#used;
    this.#slots = new Int32Array(slots.length * 2);
    this.#used = new Uint8Array(used.length * 2);
    for (let from = 0; from < used.length; from++) {
      if (used[from] === 0) continue;
      const entry = slots.subarray(from * WORDS, (from + 1) * WORDS);
      const slot = this.#slotOf(entry[0] as number, entry[1] as number);
      this.#used[slot] = 1;
      this.#slots.set(entry, slot * WORDS);
    }
  }

  /** Engines' hashes are even; old ones are small numbers, so both words are mixed. */
  #home(low: number, high: number): number {
    let mixed = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high, 0xc2b2ae35);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0x27d4eb2f);
    return ((mixed ^ (mixed >>> 15)) >>> 0) & (this.#used.length - 1);
  }

  #word(slot: number, column: number): number {
    return this.#slots[slot * WORDS + column] as number;
  }
}
