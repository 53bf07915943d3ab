// Tables of u64 keys, each with a u32 tag (a count or a state; 0 is no entry) and, in a wide table,
// a u64 value, in a half wide one a u32. Open addressing with linear probing and deletion by shifting back, so that a table
// that lives for months holds no tombstones.
//
// A table is 64 segments that grow on their own: one growth moves 1/64 of the entries, which keeps
// the event loop's longest pause short at millions of entries.
//
// header      segment descriptor (16 bytes)      segment block, capacity c
// [0] entries [0] block pointer                  keys   c * 8
// [4] wide    [4] capacity shift; 0 = no block   values c * 8   (c * 4 where half wide)
// [8..]       [8] entries                        tags   c * 4

import { allocate, blockShift, release } from './memory';
import { mix } from './mix';

/** Values of 8 bytes, and of 4. */
export const WIDE: u32 = 1;
export const HALF_WIDE: u32 = 2;

const SEGMENTS: usize = 64;
const SEGMENT_BYTES: usize = 16;
const HEADER_BYTES: usize = 8;
const TABLE_BYTES: usize = HEADER_BYTES + SEGMENTS * SEGMENT_BYTES;
const FIRST_CAPACITY_SHIFT: u32 = 4;

// @ts-ignore: decorator
@inline
function segmentOf(table: usize, hash: u64): usize {
  return table + HEADER_BYTES + ((hash >> 58) as usize) * SEGMENT_BYTES;
}

// @ts-ignore: decorator
@inline
function slotBytes(wide: u32): u32 {
  return 12 + valueBytes(wide);
}

// @ts-ignore: decorator
@inline
function valueBytes(wide: u32): u32 {
  return wide == WIDE ? 8 : wide == HALF_WIDE ? 4 : 0;
}

// @ts-ignore: decorator
@inline
function tagsOf(block: usize, shift: u32, wide: u32): usize {
  return block + (((8 + valueBytes(wide)) as usize) << shift);
}

// @ts-ignore: decorator
@inline
function copyValue(to: usize, slot: usize, from: usize, fromSlot: usize, wide: u32): void {
  if (wide == WIDE) store<u64>(to + (slot << 3), load<u64>(from + (fromSlot << 3)));
  else if (wide == HALF_WIDE) store<u32>(to + (slot << 2), load<u32>(from + (fromSlot << 2)));
}

export function newTable(wide: u32): usize {
  const table = allocate(blockShift(TABLE_BYTES as u32));
  if (table == 0) return 0;
  memory.fill(table, 0, TABLE_BYTES);
  store<u32>(table, wide, 4);
  return table;
}

export function clearTable(table: usize): void {
  const wide = load<u32>(table, 4);
  for (let i: usize = 0; i < SEGMENTS; i++) {
    const segment = table + HEADER_BYTES + i * SEGMENT_BYTES;
    const shift = load<u32>(segment, 4);
    if (shift != 0) release(load<u32>(segment), blockShift(slotBytes(wide) << shift));
    memory.fill(segment, 0, SEGMENT_BYTES);
  }
  store<u32>(table, 0);
}

export function freeTable(table: usize): void {
  clearTable(table);
  release(table, blockShift(TABLE_BYTES as u32));
}

/** Slot that holds `key`, or the empty one where it belongs. The segment has a block. */
// @ts-ignore: decorator
@inline
function probe(block: usize, tags: usize, mask: usize, hash: u64, key: u64): usize {
  let slot = (hash as usize) & mask;
  while (load<u32>(tags + (slot << 2)) != 0 && load<u64>(block + (slot << 3)) != key) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

// What the last find() or claim() came to rest on: AssemblyScript returns one value only.
let atSegment: usize = 0;
let atSlot: usize = 0;
let atKey: usize = 0;
export let atTag: usize = 0;
export let atValue: usize = 0;

// @ts-ignore: decorator
@inline
function rest(segment: usize, wide: u32, hash: u64, key: u64): u32 {
  const block = load<u32>(segment) as usize;
  const shift = load<u32>(segment, 4);
  const tags = tagsOf(block, shift, wide);
  const slot = probe(block, tags, ((1 as usize) << shift) - 1, hash, key);
  atSegment = segment;
  atSlot = slot;
  atKey = block + (slot << 3);
  atTag = tags + (slot << 2);
  if (wide == WIDE) atValue = block + ((8 as usize) << shift) + (slot << 3);
  if (wide == HALF_WIDE) atValue = block + ((8 as usize) << shift) + (slot << 2);
  return load<u32>(atTag);
}

/** Comes to rest on the entry of `key` and returns its tag; 0 where there is none. */
// @ts-ignore: decorator
@inline
export function find(table: usize, wide: u32, key: u64): u32 {
  const hash = mix(key);
  const segment = segmentOf(table, hash);
  if (load<u32>(segment, 4) == 0) return 0;
  return rest(segment, wide, hash, key);
}

/** As find(), with room made for the entry; false where there is no memory for it. */
// @ts-ignore: decorator
@inline
export function claim(table: usize, wide: u32, key: u64): bool {
  const hash = mix(key);
  const segment = segmentOf(table, hash);
  if (!reserve(segment, wide)) return false;
  rest(segment, wide, hash, key);
  return true;
}

/** Fills the empty slot that claim() came to rest on. */
// @ts-ignore: decorator
@inline
export function insert(table: usize, key: u64, tag: u32): void {
  store<u64>(atKey, key);
  store<u32>(atTag, tag);
  store<u32>(atSegment, load<u32>(atSegment, 8) + 1, 8);
  store<u32>(table, load<u32>(table) + 1);
}

function grow(segment: usize, wide: u32): bool {
  const oldShift = load<u32>(segment, 4);
  const oldBlock = load<u32>(segment) as usize;
  const shift = oldShift == 0 ? FIRST_CAPACITY_SHIFT : oldShift + 1;
  const block = allocate(blockShift(slotBytes(wide) << shift));
  if (block == 0) return false;
  const tags = tagsOf(block, shift, wide);
  memory.fill(tags, 0, (4 as usize) << shift);
  const mask = ((1 as usize) << shift) - 1;
  if (oldShift != 0) {
    const oldTags = tagsOf(oldBlock, oldShift, wide);
    const oldCapacity = (1 as usize) << oldShift;
    const values = block + ((8 as usize) << shift);
    const oldValues = oldBlock + ((8 as usize) << oldShift);
    for (let i: usize = 0; i < oldCapacity; i++) {
      const tag = load<u32>(oldTags + (i << 2));
      if (tag == 0) continue;
      const key = load<u64>(oldBlock + (i << 3));
      const slot = probe(block, tags, mask, mix(key), key);
      store<u64>(block + (slot << 3), key);
      store<u32>(tags + (slot << 2), tag);
      copyValue(values, slot, oldValues, i, wide);
    }
    release(oldBlock, blockShift(slotBytes(wide) << oldShift));
  }
  store<u32>(segment, block as u32);
  store<u32>(segment, shift, 4);
  return true;
}

/**
 * Makes room for one more entry in a segment at half of its capacity: at three quarters a removal moves
 * twice as many entries back.
 */
// @ts-ignore: decorator
@inline
function reserve(segment: usize, wide: u32): bool {
  const shift = load<u32>(segment, 4);
  const entries = load<u32>(segment, 8);
  if (shift != 0 && (entries + 1) * 2 <= 1 << shift) return true;
  return grow(segment, wide);
}

/** Empties the slot that find() came to rest on and moves later entries of its run back over it. */
export function removeFound(table: usize): void {
  const segment = atSegment;
  let empty = atSlot;
  const wide = load<u32>(table, 4);
  const block = load<u32>(segment) as usize;
  const shift = load<u32>(segment, 4);
  const tags = tagsOf(block, shift, wide);
  const values = block + ((8 as usize) << shift);
  const mask = ((1 as usize) << shift) - 1;
  let slot = empty;
  while (true) {
    slot = (slot + 1) & mask;
    const tag = load<u32>(tags + (slot << 2));
    if (tag == 0) break;
    const key = load<u64>(block + (slot << 3));
    const home = (mix(key) as usize) & mask;
    // An entry whose home lies behind the hole would be lost if it moved into the hole.
    if (((slot - home) & mask) < ((slot - empty) & mask)) continue;
    store<u64>(block + (empty << 3), key);
    store<u32>(tags + (empty << 2), tag);
    copyValue(values, empty, values, slot, wide);
    empty = slot;
  }
  store<u32>(tags + (empty << 2), 0);
  store<u32>(segment, load<u32>(segment, 8) - 1, 8);
  store<u32>(table, load<u32>(table) - 1);
}

/** Tag of a key, 0 where there is no entry. */
export function tagOf(table: usize, key: u64): u32 {
  return find(table, load<u32>(table, 4), key);
}
