/**
 * ObjectTable: the objects of one scope, packed: key bytes, a set of media as bits, a number for what else
 * is known of the object.
 *
 * Entries  keep their number for as long as the object is held, so a walk in steps by entry number meets
 *          every object that is held all the while. A freed number is given to another object.
 * Memory   typed arrays that double; key bytes lie in one buffer, which is packed anew when more than a
 *          third of it belongs to objects that are gone.
 * Throws   never. Keys are not checked, but their length has to be told in 16 bits.
 */
import { randomBytes } from 'node:crypto';

/** Longest key that an entry can tell the length of. */
export const MAX_TABLE_KEY_BYTES = 0xffff;

/** Small, as a batch may name thousands of servers: so short arrays need no memory of their own. */
const MIN_ENTRIES = 4;
const MIN_KEY_BYTES = 64;
/** Slots for each entry: what keeps probes short. */
const SLOTS_PER_ENTRY = 2;
/** So that nobody outside can choose keys that collide. */
const SEED = randomBytes(4).readUInt32LE();

export class ObjectTable {
  /** Objects held. */
  size = 0;
  /** Entry numbers given out so far: a walk ends here. */
  entryEnd = 0;
  /** Bytes of the keys held. */
  keyBytes = 0;
  /** Entry + 1, by hash, with linear probing; 0 where there is none. */
  #slots = new Uint32Array(MIN_ENTRIES * SLOTS_PER_ENTRY);
  #hashes = new Uint32Array(MIN_ENTRIES);
  #keyStarts = new Uint32Array(MIN_ENTRIES);
  #keyLengths = new Uint16Array(MIN_ENTRIES);
  /** Set of media as bits; 0 in an entry that is free. */
  #media = new Uint16Array(MIN_ENTRIES);
  #attributes = new Uint32Array(MIN_ENTRIES);
  #marks = new Uint8Array(MIN_ENTRIES);
  #keys = new Uint8Array(MIN_KEY_BYTES);
  #keysEnd = 0;
  /** Free entries, linked through `#keyStarts` as entry + 1. */
  #firstFree = 0;

  /** Bytes of all arrays, what is reserved included. */
  get bytes(): number {
    const perEntry = this.#hashes.length * (4 + 4 + 2 + 2 + 4 + 1);
    return this.#slots.byteLength + perEntry + this.#keys.byteLength;
  }

  /** The object's entry; -1 where it is not held. */
  find(key: Uint8Array): number {
    return this.#find(key, this.#hashOf(key));
  }

  /** The object's entry; a new one, where it was not held, has no media and is given some at once. */
  findOrAdd(key: Uint8Array): number {
    const hash = this.#hashOf(key);
    const known = this.#find(key, hash);
    if (known >= 0) return known;
    const entry = this.#takeEntry();
    this.#hashes[entry] = hash;
    this.#keyStarts[entry] = this.#putKey(key);
    this.#keyLengths[entry] = key.length;
    this.#attributes[entry] = 0;
    this.#marks[entry] = 0;
    this.#link(entry, hash);
    this.size++;
    this.keyBytes += key.length;
    return entry;
  }

  remove(entry: number): void {
    this.#unlink(entry);
    this.size--;
    this.keyBytes -= this.#keyLengths[entry] as number;
    this.#media[entry] = 0;
    this.#keyStarts[entry] = this.#firstFree;
    this.#firstFree = entry + 1;
  }

  /** 0 for an entry that is free. */
  media(entry: number): number {
    return this.#media[entry] as number;
  }

  setMedia(entry: number, media: number): void {
    this.#media[entry] = media;
  }

  attributes(entry: number): number {
    return this.#attributes[entry] as number;
  }

  setAttributes(entry: number, attributes: number): void {
    this.#attributes[entry] = attributes;
  }

  /** What `setMark` has set last, since the object was added; 0 before. */
  mark(entry: number): number {
    return this.#marks[entry] as number;
  }

  /** 1 … 255. */
  setMark(entry: number, mark: number): void {
    this.#marks[entry] = mark;
  }

  /** A view that the next object added may invalidate. */
  key(entry: number): Uint8Array {
    const start = this.#keyStarts[entry] as number;
    return this.#keys.subarray(start, start + (this.#keyLengths[entry] as number));
  }

  *keys(): Generator<Uint8Array> {
    for (let entry = 0; entry < this.entryEnd; entry++) {
      if (this.#media[entry] !== 0) yield this.key(entry);
    }
  }

  #find(key: Uint8Array, hash: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = (this.#slots[slot] as number) - 1;
      if (entry < 0) return -1;
      if (this.#hashes[entry] === hash && this.#holds(entry, key)) return entry;
    }
  }

  #holds(entry: number, key: Uint8Array): boolean {
    if (this.#keyLengths[entry] !== key.length) return false;
    const keys = this.#keys;
    const start = this.#keyStarts[entry] as number;
    for (let index = 0; index < key.length; index++) {
      if (keys[start + index] !== key[index]) return false;
    }
    return true;
  }

  /** FNV-1a from the seed, its bits mixed for the mask. */
  #hashOf(key: Uint8Array): number {
    let hash = SEED;
    for (let index = 0; index < key.length; index++) {
      hash = Math.imul(hash ^ (key[index] as number), 0x01000193);
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    return (hash ^ (hash >>> 13)) >>> 0;
  }

  #takeEntry(): number {
    if (this.#firstFree > 0) {
      const entry = this.#firstFree - 1;
      this.#firstFree = this.#keyStarts[entry] as number;
      return entry;
    }
    if (this.entryEnd === this.#hashes.length) this.#growEntries();
    return this.entryEnd++;
  }

  #growEntries(): void {
    const count = this.#hashes.length * 2;
    this.#hashes = grown32(this.#hashes, count);
    this.#keyStarts = grown32(this.#keyStarts, count);
    this.#attributes = grown32(this.#attributes, count);
    this.#keyLengths = grown16(this.#keyLengths, count);
    this.#media = grown16(this.#media, count);
    const marks = new Uint8Array(count);
    marks.set(this.#marks);
    this.#marks = marks;
    this.#slots = new Uint32Array(count * SLOTS_PER_ENTRY);
    // All entries are taken here, or there would be no need to grow.
    for (let entry = 0; entry < this.entryEnd; entry++) {
      this.#link(entry, this.#hashes[entry] as number);
    }
  }

  #link(entry: number, hash: number): void {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = entry + 1;
  }

  /** Entries behind the gap move up, where their probes would else end at it. */
  #unlink(entry: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = (this.#hashes[entry] as number) & mask;
    while (slots[gap] !== entry + 1) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const home = (this.#hashes[(slots[slot] as number) - 1] as number) & mask;
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots[gap] = slots[slot] as number;
      gap = slot;
    }
    slots[gap] = 0;
  }

  #putKey(key: Uint8Array): number {
    if (this.#keysEnd + key.length > this.#keys.length) this.#makeRoom(key.length);
    const start = this.#keysEnd;
    this.#keys.set(key, start);
    this.#keysEnd = start + key.length;
    return start;
  }

  #makeRoom(length: number): void {
    const needed = this.keyBytes + length;
    const isMostlyHeld = this.keyBytes * 3 > this.#keysEnd * 2;
    const room = isMostlyHeld ? this.#keys.length * 2 : this.#keys.length;
    const keys = new Uint8Array(Math.max(room, needed * 2, MIN_KEY_BYTES));
    let end = 0;
    for (let entry = 0; entry < this.entryEnd; entry++) {
      if (this.#media[entry] === 0) continue;
      const held = this.key(entry);
      keys.set(held, end);
      this.#keyStarts[entry] = end;
      end += held.length;
    }
    this.#keys = keys;
    this.#keysEnd = end;
  }
}

function grown32(array: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(length);
  larger.set(array);
  return larger;
}

function grown16(array: Uint16Array, length: number): Uint16Array<ArrayBuffer> {
  const larger = new Uint16Array(length);
  larger.set(array);
  return larger;
}
