// Nodes of the router's tree, and the runs of blocks they hold. A node is its address.
//
// node (64 bytes)
// [0]  run       address of its blocks; 0 = none      [32] names    hashes that name the node
// [4]  shift     of the run's memory                  [36] flags
// [8]  length    blocks of the run                    [40] listPrev list of nodes with dead blocks,
// [12] held      first blocks that the rank has       [44] listNext or of shells
// [16] parent    0 = none                             [48] serial   u64, the children's key
// [20] child     first child                          [56] pending  list of nodes that may go
// [24] next, [28] prev   siblings
//
// block of a run (16 bytes): hash u64, tokens hash u64

import { allocate, release } from './memory';

export const NODE_SHIFT: u32 = 6;
export const BLOCK_SHIFT: usize = 4;

/** The run has had children: it grows no more. */
export const WAS_PARENT: u32 = 1;
/** Reachable from the root. */
export const ATTACHED: u32 = 2;
/** A block of the run may have its hash's entry elsewhere, or twice in the run. */
export const MIXED: u32 = 4;
export const IN_DEAD: u32 = 8;
export const IN_SHELLS: u32 = 16;
export const IN_PENDING: u32 = 32;
/** Nothing of the run is held, and no entry says where its blocks lie. */
export const UNINDEXED: u32 = 64;

// Runs of one and two blocks are smaller than what the allocator hands out.
const SMALL_SHIFT: u32 = 4;
const SMALL_END: u32 = 6;
const CHUNK_SHIFT: u32 = 12;
const SMALL_LISTS: usize = memory.data(8, 8);

function refill(list: usize, shift: u32): void {
  const chunk = allocate(CHUNK_SHIFT);
  if (chunk == 0) unreachable();
  const end = chunk + ((1 as usize) << CHUNK_SHIFT);
  for (let at = chunk; at < end; at += (1 as usize) << shift) {
    store<u32>(at, load<u32>(list));
    store<u32>(list, at as u32);
  }
}

export function takeRun(shift: u32): usize {
  if (shift >= SMALL_END) {
    const run = allocate(shift);
    // The callers leave room below the address space's end, so this is a host without memory.
    if (run == 0) unreachable();
    return run;
  }
  const list = SMALL_LISTS + ((shift - SMALL_SHIFT) << 2);
  if (load<u32>(list) == 0) refill(list, shift);
  const run = load<u32>(list) as usize;
  store<u32>(list, load<u32>(run));
  return run;
}

export function giveRun(run: usize, shift: u32): void {
  if (shift >= SMALL_END) {
    release(run, shift);
    return;
  }
  const list = SMALL_LISTS + ((shift - SMALL_SHIFT) << 2);
  store<u32>(run, load<u32>(list));
  store<u32>(list, run as u32);
}

/** Smallest shift of a run with `blocks` blocks. */
// @ts-ignore: decorator
@inline
export function runShift(blocks: u32): u32 {
  return blocks <= 1 ? SMALL_SHIFT : SMALL_SHIFT + 32 - clz<u32>(blocks - 1);
}

// @ts-ignore: decorator
@inline
export function lengthOf(node: usize): u32 {
  return load<u32>(node, 8);
}

// @ts-ignore: decorator
@inline
export function heldOf(node: usize): u32 {
  return load<u32>(node, 12);
}

// @ts-ignore: decorator
@inline
export function parentOf(node: usize): usize {
  return load<u32>(node, 16);
}

// @ts-ignore: decorator
@inline
export function childOf(node: usize): usize {
  return load<u32>(node, 20);
}

// @ts-ignore: decorator
@inline
export function nextOf(node: usize): usize {
  return load<u32>(node, 24);
}

// @ts-ignore: decorator
@inline
export function has(node: usize, flag: u32): bool {
  return (load<u32>(node, 36) & flag) != 0;
}

// @ts-ignore: decorator
@inline
export function setFlag(node: usize, flag: u32): void {
  store<u32>(node, load<u32>(node, 36) | flag, 36);
}

// @ts-ignore: decorator
@inline
export function clearFlag(node: usize, flag: u32): void {
  store<u32>(node, load<u32>(node, 36) & ~flag, 36);
}

/** Address of a block of the run. */
// @ts-ignore: decorator
@inline
export function blockAt(node: usize, position: u32): usize {
  return (load<u32>(node) as usize) + ((position as usize) << BLOCK_SHIFT);
}

// @ts-ignore: decorator
@inline
export function hashAt(node: usize, position: u32): u64 {
  return load<u64>(blockAt(node, position));
}

// @ts-ignore: decorator
@inline
export function tokensAt(node: usize, position: u32): u64 {
  return load<u64>(blockAt(node, position), 8);
}

/** Whether the run ends with `hash`. */
// @ts-ignore: decorator
@inline
export function endsWith(node: usize, hash: u64): bool {
  const length = lengthOf(node);
  return length != 0 && hashAt(node, length - 1) == hash;
}

/** Last place of `hash` in the run, by looking at each; -1 where it has none. */
export function scanFor(node: usize, hash: u64): i32 {
  for (let i = (lengthOf(node) as i32) - 1; i >= 0; i--) {
    if (hashAt(node, i as u32) == hash) return i;
  }
  return -1;
}

/** Appends blocks of two lists to the run's memory, which grows by doubling. */
export function appendBlocks(node: usize, hashes: usize, tokens: usize, count: u32): void {
  const length = lengthOf(node);
  resizeRun(node, length + count, false);
  let at = blockAt(node, length);
  for (const end = hashes + ((count as usize) << 3); hashes < end; hashes += 8, tokens += 8) {
    store<u64>(at, load<u64>(hashes));
    store<u64>(at, load<u64>(tokens), 8);
    at += 16;
  }
  store<u32>(node, length + count, 8);
}

/** Makes room for `blocks` blocks, or with `shrinks` gives back what is more than twice that. */
export function resizeRun(node: usize, blocks: u32, shrinks: bool): void {
  const old = load<u32>(node) as usize;
  const oldShift = load<u32>(node, 4);
  const shift = runShift(blocks);
  if (old != 0 && (shrinks ? shift >= oldShift : shift <= oldShift)) return;
  if (blocks == 0) {
    if (old != 0) giveRun(old, oldShift);
    store<u32>(node, 0);
    return;
  }
  const run = takeRun(shift);
  if (old != 0) {
    const kept = min(lengthOf(node), blocks) as usize;
    memory.copy(run, old, kept << BLOCK_SHIFT);
    giveRun(old, oldShift);
  }
  store<u32>(node, run as u32);
  store<u32>(node, shift, 4);
}
