// Tables of u64 keys, each with a u32 tag (a count or a state; 0 is no entry) and a value: a u32, or in a wide
// table a u64.
//
// An entry lies in its home bucket or, where that is full, in one of those after it, all between being full. A bucket
// is one cache line (two in a wide table), so that nearly every look-up and removal waits for memory once, and its
// four slots are compared together. What is removed is filled from behind at once: a table that lives
// for months holds no tombstones.
//
// A table is 64 segments that grow on their own: one growth moves 1/64 of the entries, which keeps
// the event loop's longest pause short at millions of entries.
//
// header      segment descriptor (16 bytes)      bucket (64 bytes, 128 in a wide table), 4 slots
// [0] entries [0] block pointer; 0 = no block    [0]  keys    4 u64
// [4] wide    [4] shift of its bucket count      [32] tags    4 u32, 0 = empty
// [8..]       [8] entries                        [48] values  4 u32, or [64] 4 u64

import { allocate, blockShift, release } from './memory';
import { mix } from './mix';

export const NARROW: u32 = 0;
export const WIDE: u32 = 1;

const TAGS: usize = 32;
const SEGMENTS: usize = 64;
const SEGMENT_BYTES: usize = 16;
const HEADER_BYTES: usize = 8;
const TABLE_BYTES: usize = HEADER_BYTES + SEGMENTS * SEGMENT_BYTES;
const SLOTS: usize = 4;
const ALL_SLOTS: u32 = 15;
/** Entries for every two buckets before a segment grows: with more, too many buckets are full. */
const MOST_IN_BUCKETS: u32 = 5;

// @ts-ignore: decorator
@inline
function segmentOf(table: usize, hash: u64): usize {
  return table + HEADER_BYTES + ((hash >> 58) as usize) * SEGMENT_BYTES;
}

/** Shift of a bucket's bytes. */
// @ts-ignore: decorator
@inline
function bucketShift(wide: u32): u32 {
  return 6 + wide;
}

// @ts-ignore: decorator
@inline
function valueAt(bucket: usize, slot: usize, wide: u32): usize {
  return wide == WIDE ? bucket + 64 + (slot << 3) : bucket + 48 + (slot << 2);
}

/** The slots of a bucket that are empty, a bit each. */
// @ts-ignore: decorator
@inline
function emptySlots(bucket: usize): u32 {
  return i32x4.bitmask(i32x4.eq(v128.load(bucket, TAGS), i32x4.splat(0)));
}

/** The slots of a bucket that have `key`, empty ones included. */
// @ts-ignore: decorator
@inline
function slotsWith(bucket: usize, key: u64): u32 {
  const wanted = i64x2.splat(key);
  const first = i64x2.bitmask(i64x2.eq(v128.load(bucket), wanted));
  return first | (i64x2.bitmask(i64x2.eq(v128.load(bucket, 16), wanted)) << 2);
}

// @ts-ignore: decorator
@inline
function copySlot(to: usize, toSlot: usize, from: usize, slot: usize, wide: u32): void {
  store<u64>(to + (toSlot << 3), load<u64>(from + (slot << 3)));
  store<u32>(to + (toSlot << 2), load<u32>(from + (slot << 2), TAGS), TAGS);
  const value = valueAt(from, slot, wide);
  if (wide == WIDE) store<u64>(valueAt(to, toSlot, wide), load<u64>(value));
  else store<u32>(valueAt(to, toSlot, wide), load<u32>(value));
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
    const block = load<u32>(segment) as usize;
    if (block != 0) release(block, load<u32>(segment, 4) + bucketShift(wide));
    memory.fill(segment, 0, SEGMENT_BYTES);
  }
  store<u32>(table, 0);
}

export function freeTable(table: usize): void {
  clearTable(table);
  release(table, blockShift(TABLE_BYTES as u32));
}

// What the last find() or claim() came to rest on: AssemblyScript returns one value only.
let atSegment: usize = 0;
let atBucket: usize = 0;
let atSlot: usize = 0;
export let atTag: usize = 0;
export let atValue: usize = 0;

/** Comes to rest on the entry of `key`, or on the empty slot where it belongs. The segment has a block. */
// @ts-ignore: decorator
@inline
function rest(segment: usize, wide: u32, hash: u64, key: u64): u32 {
  const block = load<u32>(segment) as usize;
  const mask = ((1 as usize) << load<u32>(segment, 4)) - 1;
  let index = (hash as usize) & mask;
  let bucket: usize;
  let slots: u32;
  while (true) {
    bucket = block + (index << bucketShift(wide));
    const empty = emptySlots(bucket);
    slots = slotsWith(bucket, key) & ~empty;
    if (slots != 0) break;
    slots = empty;
    if (slots != 0) break;
    index = (index + 1) & mask;
  }
  const slot = ctz(slots) as usize;
  atSegment = segment;
  atBucket = bucket;
  atSlot = slot;
  atTag = bucket + TAGS + (slot << 2);
  atValue = valueAt(bucket, slot, wide);
  return load<u32>(atTag);
}

/** Comes to rest on the entry of `key` and returns its tag; 0 where there is none. */
// @ts-ignore: decorator
@inline
export function find(table: usize, wide: u32, key: u64): u32 {
  const hash = mix(key);
  const segment = segmentOf(table, hash);
  if (load<u32>(segment) == 0) return 0;
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
  store<u64>(atBucket + (atSlot << 3), key);
  store<u32>(atTag, tag);
  store<u32>(atSegment, load<u32>(atSegment, 8) + 1, 8);
  store<u32>(table, load<u32>(table) + 1);
}

function grow(segment: usize, wide: u32): bool {
  const oldShift = load<u32>(segment, 4);
  const oldBlock = load<u32>(segment) as usize;
  const shift = oldBlock == 0 ? 0 : oldShift + 1;
  const bytesShift = shift + bucketShift(wide);
  const block = allocate(bytesShift);
  if (block == 0) return false;
  memory.fill(block, 0, (1 as usize) << bytesShift);
  store<u32>(segment, block as u32);
  store<u32>(segment, shift, 4);
  if (oldBlock == 0) return true;
  const oldEnd = oldBlock + ((1 as usize) << (oldShift + bucketShift(wide)));
  for (let old = oldBlock; old < oldEnd; old += (1 as usize) << bucketShift(wide)) {
    for (let slot: usize = 0; slot < SLOTS; slot++) {
      if (load<u32>(old + (slot << 2), TAGS) == 0) continue;
      const key = load<u64>(old + (slot << 3));
      rest(segment, wide, mix(key), key);
      copySlot(atBucket, atSlot, old, slot, wide);
    }
  }
  release(oldBlock, oldShift + bucketShift(wide));
  return true;
}

/** Makes room for one more entry in a segment. */
// @ts-ignore: decorator
@inline
function reserve(segment: usize, wide: u32): bool {
  const entries = load<u32>(segment, 8);
  if (load<u32>(segment) != 0 && entries * 2 < MOST_IN_BUCKETS << load<u32>(segment, 4)) return true;
  return grow(segment, wide);
}

/** Empties the slot that find() came to rest on, and fills it with what lies further from home than it has to. */
export function removeFound(table: usize): void {
  const segment = atSegment;
  store<u32>(segment, load<u32>(segment, 8) - 1, 8);
  store<u32>(table, load<u32>(table) - 1);
  if (emptySlots(atBucket) == 0) fillHole(segment, load<u32>(table, 4));
  store<u32>(atBucket + (atSlot << 2), 0, TAGS);
}

/** Moves strayed entries over the slot at rest in a full bucket; what is at rest after it is to be emptied. */
function fillHole(segment: usize, wide: u32): void {
  const block = load<u32>(segment) as usize;
  const mask = ((1 as usize) << load<u32>(segment, 4)) - 1;
  let hole = (atBucket - block) >> bucketShift(wide);
  let index = hole;
  while (true) {
    index = (index + 1) & mask;
    const bucket = block + (index << bucketShift(wide));
    const empty = emptySlots(bucket);
    for (let slots = ~empty & ALL_SLOTS; slots != 0; slots &= slots - 1) {
      const slot = ctz(slots) as usize;
      const home = mix(load<u64>(bucket + (slot << 3))) as usize;
      // What is at home behind the hole would be lost in it.
      if (((index - home) & mask) < ((index - hole) & mask)) continue;
      copySlot(atBucket, atSlot, bucket, slot, wide);
      atBucket = bucket;
      atSlot = slot;
      hole = index;
      break;
    }
    if (empty != 0) return;
  }
}

/** Bytes of kernel memory: less lies in caches near the core, where looking ahead costs more than it saves. */
export const LOOKED_AHEAD_FROM: u32 = 1 << 23;
/** As many reads wait for memory together, at least, or looking ahead is not worth it. */
const FEW: usize = 4;

/** Where look-ups ahead leave what they read: a read whose value nobody takes need not be made. */
let seen: u32 = 0;

/** Bucket of a key, `after` its home. The segment has a block, or it is address 0. */
// @ts-ignore: decorator
@inline
function bucketOf(table: usize, key: u64, after: usize): usize {
  const hash = mix(key);
  const segment = segmentOf(table, hash);
  const mask = ((1 as usize) << load<u32>(segment, 4)) - 1;
  const bucket = ((hash as usize) + after) & mask;
  return (load<u32>(segment) as usize) + (bucket << bucketShift(NARROW));
}

/**
 * Reads the buckets of many keys of a narrow table, `stride` bytes between two keys. The look-ups that follow find
 * them in the cache: their waits for memory would come one after the other, those here overlap.
 */
export function lookAhead(table: usize, keys: usize, count: usize, stride: usize): void {
  if (count < FEW || (memory.size() as u32) < LOOKED_AHEAD_FROM >> 16) return;
  const end = keys + count * stride;
  let sum: u32 = 0;
  for (let at = keys; at < end; at += stride) sum += load<u32>(bucketOf(table, load<u64>(at), 0));
  for (let at = keys; at < end; at += stride) {
    const key = load<u64>(at);
    if (emptySlots(bucketOf(table, key, 0)) == 0) sum += load<u32>(bucketOf(table, key, 1));
  }
  seen = sum;
}

/** Tag of a key, 0 where there is no entry. */
export function tagOf(table: usize, key: u64): u32 {
  return find(table, load<u32>(table, 4), key);
}
