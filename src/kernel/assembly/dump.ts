// Writes what a tree or a lower tier holds as store events, in parts: each call goes on where the last one
// stopped, whatever was applied in between. A block that stays held meanwhile is written once, its parent
// before it.

import { allocate } from './memory';
import { putStored } from './encode';
import { recordAt, RECORD_CHILD, RECORD_FREE, TIER_CURSOR, usedRecords } from './lower-tier';
import { afterSubtree } from './router-tree';
import { blockAt, childOf, hashAt, heldOf, lengthOf, nextOf, parentOf } from './runs';

const ROOT: usize = 8;
const CURSOR_NODE: usize = 44;
const CURSOR_POSITION: usize = 48;

/** Most blocks of one event; a longer chain goes on in the next. */
const MAX_EVENT_BLOCKS: u32 = 1024;
/** Most bytes of one event: its blocks and what stands around them. */
export const MAX_EVENT_BYTES: usize = 1024 * 57 + 1024;

const LIST_SHIFT: u32 = 13;
let hashList: usize = 0;
let tokensList: usize = 0;

/** Events that the last call wrote. */
let written: u32 = 0;

export function dumpedEvents(): u32 {
  return written;
}

/** Sets a dump to its begin; false where there is no memory for one. */
export function startTreeDump(tree: usize): bool {
  if (hashList == 0) hashList = allocate(LIST_SHIFT);
  if (tokensList == 0) tokensList = allocate(LIST_SHIFT);
  store<u32>(tree, childOf(load<u32>(tree, ROOT)) as u32, CURSOR_NODE);
  store<u32>(tree, 0, CURSOR_POSITION);
  return hashList != 0 && tokensList != 0;
}

/** Writes events from `at` while the next one surely ends before `end`; returns where they end. */
export function dumpTree(
  tree: usize,
  template: usize,
  at: usize,
  end: usize,
  firstId: u64,
  dpRank: u32,
): usize {
  written = 0;
  const root = load<u32>(tree, ROOT) as usize;
  while (load<u32>(tree, CURSOR_NODE) != 0 && end - at >= MAX_EVENT_BYTES) {
    const node = load<u32>(tree, CURSOR_NODE) as usize;
    const position = load<u32>(tree, CURSOR_POSITION);
    let hasParent: u32 = 1;
    let parent: u64 = 0;
    const above = parentOf(node);
    if (position > 0) parent = hashAt(node, position - 1);
    else if (above == root) hasParent = 0;
    else parent = hashAt(above, lengthOf(above) - 1);
    const count = takeChain(tree, node, position);
    if (count == 0) continue;
    const id = firstId + (written as u64);
    at = putStored(at, template, id, hasParent, parent, hashList, tokensList, count, dpRank);
    written++;
  }
  return at;
}

/** Copies an unbranched chain to the lists and moves the cursor behind it; returns its length. */
function takeChain(tree: usize, node: usize, position: u32): u32 {
  let count: u32 = 0;
  while (true) {
    const held = heldOf(node);
    let at = blockAt(node, position);
    for (; position < held && count < MAX_EVENT_BLOCKS; position++, count++, at += 16) {
      store<u64>(hashList + ((count as usize) << 3), load<u64>(at));
      store<u64>(tokensList + ((count as usize) << 3), load<u64>(at, 8));
    }
    if (position < held) break;
    const child = childOf(node);
    position = 0;
    if (child == 0) {
      node = afterSubtree(node);
      break;
    }
    // Below a place that is not held nothing is folded: its hash is the parent's.
    const folds = held == lengthOf(node) && count != 0;
    node = child;
    if (!folds || nextOf(child) != 0 || count == MAX_EVENT_BLOCKS) break;
  }
  store<u32>(tree, node as u32, CURSOR_NODE);
  store<u32>(tree, position, CURSOR_POSITION);
  return count;
}

export function startTierDump(tier: usize): void {
  store<u32>(tier, 1, TIER_CURSOR);
}

/** The same for a lower tier, one event a block. */
export function dumpTier(
  tier: usize,
  template: usize,
  at: usize,
  end: usize,
  firstId: u64,
  dpRank: u32,
): usize {
  written = 0;
  let record = load<u32>(tier, TIER_CURSOR);
  for (; record <= usedRecords(tier) && end - at >= MAX_EVENT_BYTES; record++) {
    const from = recordAt(tier, record);
    const state = load<u32>(from, 24);
    if (state == RECORD_FREE) continue;
    const hasParent: u32 = state == RECORD_CHILD ? 1 : 0;
    const id = firstId + (written as u64);
    at = putStored(at, template, id, hasParent, load<u64>(from, 8), from, from + 16, 1, dpRank);
    written++;
  }
  store<u32>(tier, record, TIER_CURSOR);
  return at;
}

/** Whether a tree's dump has come to its end. */
export function treeDumpEnded(tree: usize): bool {
  return load<u32>(tree, CURSOR_NODE) == 0;
}

export function tierDumpEnded(tier: usize): bool {
  return load<u32>(tier, TIER_CURSOR) > usedRecords(tier);
}
