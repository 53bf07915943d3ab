/**
 * U64Map: u64 → u64, packed, for tables with an entry a block.
 *
 * Memory   17 bytes a slot, and twice to four times as many slots as entries.
 * Grows    step by step: entries move to the larger table with the calls that follow, so that none of them takes long.
 * Words    are signed; an entry's number holds until the next call but `valueLow` and `valueHigh`.
 */
const MIN_SLOTS = 64;
/** Key low, key high, value low, value high. */
const WORDS = 4;
/** Slots of the smaller table that a call looks at: it is empty long before the larger one is full. */
const MOVED_SLOTS = 16;

const FREE = 0;
const USED = 1;
/** Of the smaller table: probes go on behind it. */
const MOVED = 2;

interface Table {
  readonly slots: Int32Array;
  readonly used: Uint8Array;
}

export class U64Map {
  #size = 0;
  #table = newTable(MIN_SLOTS);
  /** Whose entries are on their way, and where those begin that have not been looked at. */
  #smaller: Table | null = null;
  #movedSlots = 0;

  get size(): number {
    return this.#size;
  }

  /** The entry of the key; -1 where there is none. */
  find(low: number, high: number): number {
    this.#moveSome();
    const slot = slotOf(this.#table, low | 0, high | 0);
    if (this.#table.used[slot] === USED) return slot;
    const smaller = this.#smaller;
    if (smaller === null) return -1;
    const old = slotOf(smaller, low | 0, high | 0);
    return smaller.used[old] === USED ? this.#move(smaller, old) : -1;
  }

  valueLow(entry: number): number {
    return this.#table.slots[entry * WORDS + 2] as number;
  }

  valueHigh(entry: number): number {
    return this.#table.slots[entry * WORDS + 3] as number;
  }

  set(low: number, high: number, valueLow: number, valueHigh: number): void {
    if (this.#size * 2 >= this.#table.used.length) this.#grow();
    const known = this.find(low, high);
    const slot = known >= 0 ? known : slotOf(this.#table, low | 0, high | 0);
    if (known < 0) this.#size++;
    this.#table.used[slot] = USED;
    this.#table.slots.set([low, high, valueLow, valueHigh], slot * WORDS);
  }

  delete(low: number, high: number): void {
    let gap = this.find(low, high);
    if (gap < 0) return;
    this.#size--;
    const { slots, used } = this.#table;
    const mask = used.length - 1;
    // Entries behind the gap move up, where their probes would else end at it.
    for (let slot = (gap + 1) & mask; used[slot] === USED; slot = (slot + 1) & mask) {
      const home = homeOf(slots[slot * WORDS] as number, slots[slot * WORDS + 1] as number, mask);
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots.copyWithin(gap * WORDS, slot * WORDS, (slot + 1) * WORDS);
      gap = slot;
    }
    used[gap] = FREE;
  }

  #grow(): void {
    while (this.#smaller !== null) this.#moveSome();
    this.#smaller = this.#table;
    this.#movedSlots = 0;
    this.#table = newTable(this.#table.used.length * 2);
  }

  #moveSome(): void {
    const smaller = this.#smaller;
    if (smaller === null) return;
    const end = Math.min(this.#movedSlots + MOVED_SLOTS, smaller.used.length);
    for (; this.#movedSlots < end; this.#movedSlots++) {
      if (smaller.used[this.#movedSlots] === USED) this.#move(smaller, this.#movedSlots);
    }
    if (end === smaller.used.length) this.#smaller = null;
  }

  /** Its slot in the larger table. */
  #move(smaller: Table, from: number): number {
    const entry = smaller.slots.subarray(from * WORDS, (from + 1) * WORDS);
    smaller.used[from] = MOVED;
    const slot = slotOf(this.#table, entry[0] as number, entry[1] as number);
    this.#table.used[slot] = USED;
    this.#table.slots.set(entry, slot * WORDS);
    return slot;
  }
}

function newTable(slotCount: number): Table {
  return { slots: new Int32Array(slotCount * WORDS), used: new Uint8Array(slotCount) };
}

/** Where the key is, or would be. */
function slotOf({ slots, used }: Table, low: number, high: number): number {
  const mask = used.length - 1;
  let slot = homeOf(low, high, mask);
  for (; used[slot] !== FREE; slot = (slot + 1) & mask) {
    const at = slot * WORDS;
    if (used[slot] === USED && slots[at] === low && slots[at + 1] === high) break;
  }
  return slot;
}

/** Engines' hashes are even; old ones are small numbers, so both words are mixed. */
function homeOf(low: number, high: number, mask: number): number {
  let mixed = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x27d4eb2f);
  return ((mixed ^ (mixed >>> 15)) >>> 0) & mask;
}
