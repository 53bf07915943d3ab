// Lists of u64: 8 bytes an entry, little endian, as one run of memory.

import { allocate, blockShift, release } from './memory';
import { mix } from './mix';
import { hash64 } from './xxh3';

/** Scratch set for repeats(): key u64 and generation u32 a slot; a new generation empties it. */
let scratch: usize = 0;
let scratchShift: u32 = 0;
let generation: u32 = 0;

/** Up to here comparing all pairs is cheaper than the scratch set. */
const FEW: usize = 8;

// @ts-ignore: decorator
@inline
function seenBefore(key: u64, mask: usize, stamps: usize): bool {
  let slot = (mix(key) as usize) & mask;
  while (load<u32>(stamps + (slot << 2)) == generation) {
    if (load<u64>(scratch + (slot << 3)) == key) return true;
    slot = (slot + 1) & mask;
  }
  store<u64>(scratch + (slot << 3), key);
  store<u32>(stamps + (slot << 2), generation);
  return false;
}

function prepareScratch(entries: usize): bool {
  const shift: u32 = 33 - clz<u32>((entries as u32) | 8);
  if (scratchShift < shift) {
    if (scratchShift != 0) release(scratch, blockShift((12 as u32) << scratchShift));
    scratchShift = 0;
    scratch = allocate(blockShift((12 as u32) << shift));
    if (scratch == 0) return false;
    scratchShift = shift;
    memory.fill(scratch, 0, (12 as usize) << shift);
    generation = 0;
  }
  if (++generation == 0) {
    memory.fill(scratch, 0, (12 as usize) << scratchShift);
    generation = 1;
  }
  return true;
}

/** Whether `parent` (if any) or an entry of the list occurs again in the list. */
export function repeats(list: usize, count: usize, hasParent: u32, parent: u64): u32 {
  const end = list + (count << 3);
  if (count <= FEW || !prepareScratch(count + 1)) {
    for (let a = list; a < end; a += 8) {
      const key = load<u64>(a);
      if (hasParent != 0 && key == parent) return 1;
      for (let b = a + 8; b < end; b += 8) if (load<u64>(b) == key) return 1;
    }
    return 0;
  }
  const stamps = scratch + ((8 as usize) << scratchShift);
  const mask = ((1 as usize) << scratchShift) - 1;
  if (hasParent != 0) seenBefore(parent, mask, stamps);
  for (let a = list; a < end; a += 8) if (seenBefore(load<u64>(a), mask, stamps)) return 1;
  return 0;
}

/**
 * Hashes `count` windows of `windowBytes`, each `strideBytes` after the one before, to the u64 list
 * `out`.
 */
export function hashWindows(
  tokens: usize,
  windowBytes: usize,
  strideBytes: usize,
  count: usize,
  seed: u64,
  out: usize,
): void {
  const end = out + (count << 3);
  for (; out < end; out += 8) {
    store<u64>(out, hash64(tokens, windowBytes, seed));
    tokens += strideBytes;
  }
}
