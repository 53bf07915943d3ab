// Names of the router's tree: for each hash the node it was stored in last, and its place in the run.
//
// An entry (narrow table): key hash, tag node, value place | SILENT. A place of NOWHERE says that the
// node has the block under another hash. SILENT says that the hash names nothing at present; the entry
// stays while the block lies there, so that every block of a run is found by its hash unless the
// run is MIXED or UNINDEXED. A node counts the entries that name it.

import { claim, find, insert, lookAhead, NARROW, removeFound, atTag, atValue } from './table';
import {
  ATTACHED,
  BLOCK_SHIFT,
  blockAt,
  childOf,
  clearFlag,
  has,
  hashAt,
  IN_PENDING,
  lengthOf,
  MIXED,
  nextOf,
  heldOf,
  parentOf,
  scanFor,
  setFlag,
  UNINDEXED,
} from './runs';

export const NOWHERE: u32 = 0x7fffffff;
const SILENT: u32 = 0x80000000;

// Fields of a tree that names need; router-tree.ts has the layout.
const PENDING: usize = 40;

/** Nodes looked at below a node whose block has another hash. */
const MAX_SEARCHED: u32 = 1024;

/** Takes what treeLookAhead() reads, as `seen` of a table does. */
let seen: u64 = 0;

/** Where the last resolve() or contains() found the hash. */
export let place: u32 = 0;

// @ts-ignore: decorator
@inline
function namesOf(tree: usize): usize {
  return load<u32>(tree);
}

// @ts-ignore: decorator
@inline
function liesAt(node: usize, position: u32, hash: u64): bool {
  return position < lengthOf(node) && hashAt(node, position) == hash;
}

/** Puts a node that nothing reaches on the list of those that may go at the end of the call. */
export function maybePending(tree: usize, node: usize): void {
  if (has(node, ATTACHED | IN_PENDING) || load<u32>(node, 32) != 0 || parentOf(node) != 0) return;
  setFlag(node, IN_PENDING);
  store<u32>(node, load<u32>(tree, PENDING), 56);
  store<u32>(tree, node as u32, PENDING);
}

// @ts-ignore: decorator
@inline
function addName(node: usize): void {
  store<u32>(node, load<u32>(node, 32) + 1, 32);
}

// @ts-ignore: decorator
@inline
function dropName(tree: usize, node: usize): void {
  store<u32>(node, load<u32>(node, 32) - 1, 32);
  maybePending(tree, node);
}

/** Lets `hash` name `node`, at `position` of its run or, where the block has another hash, NOWHERE. */
export function setName(tree: usize, hash: u64, node: usize, position: u32): void {
  if (!claim(namesOf(tree), NARROW, hash)) unreachable();
  const old = load<u32>(atTag) as usize;
  if (old == 0) {
    store<u32>(atValue, position);
    insert(namesOf(tree), hash, node as u32);
    addName(node);
    return;
  }
  const value = load<u32>(atValue);
  const oldPosition = value & ~SILENT;
  if (liesAt(old, oldPosition, hash)) {
    if (old == node && position == NOWHERE) position = oldPosition;
    if (old != node || position != oldPosition) setFlag(old, MIXED);
  }
  // A name at a place that is not held is found by no cut of its run.
  if (position != NOWHERE && position >= heldOf(node)) setFlag(node, MIXED);
  store<u32>(atTag, node as u32);
  store<u32>(atValue, position);
  if ((value & SILENT) == 0 && old == node) return;
  addName(node);
  if ((value & SILENT) == 0) dropName(tree, old);
}

/** Names `count` blocks of a list, which lie from `position` on in the run, under these or other hashes. */
export function nameBlocks(
  tree: usize,
  node: usize,
  position: u32,
  hashes: usize,
  count: u32,
): void {
  lookAhead(namesOf(tree), hashes, count, 8);
  for (let i: u32 = 0; i < count; i++) {
    const hash = load<u64>(hashes + ((i as usize) << 3));
    setName(tree, hash, node, liesAt(node, position + i, hash) ? position + i : NOWHERE);
  }
}

/** Takes the name that `hash` is. */
export function dropHash(tree: usize, hash: u64): void {
  if (find(namesOf(tree), NARROW, hash) == 0) return;
  const value = load<u32>(atValue);
  if ((value & SILENT) != 0) return;
  const node = load<u32>(atTag) as usize;
  if (liesAt(node, value, hash)) store<u32>(atValue, value | SILENT);
  else removeFound(namesOf(tree));
  dropName(tree, node);
}

/** Forgets the entry of a block that leaves the run of `node`, where it is that block's. */
export function forgetBlock(tree: usize, node: usize, position: u32): void {
  const hash = hashAt(node, position);
  if ((find(namesOf(tree), NARROW, hash) as usize) != node) return;
  const value = load<u32>(atValue);
  if ((value & ~SILENT) != position) return;
  removeFound(namesOf(tree));
  if ((value & SILENT) == 0) dropName(tree, node);
}

/** Takes the entries of a run of which nothing is held any more, in one go. */
export function unindex(tree: usize, node: usize): void {
  const length = lengthOf(node);
  lookAhead(namesOf(tree), blockAt(node, 0), length, 1 << BLOCK_SHIFT);
  for (let i: u32 = 0; i < length; i++) forgetBlock(tree, node, i);
  setFlag(node, UNINDEXED);
}

/** Notes again where the blocks of such a run lie; their hashes name nothing. */
export function reindex(tree: usize, node: usize): void {
  clearFlag(node, UNINDEXED);
  const length = lengthOf(node);
  for (let i: u32 = 0; i < length; i++) {
    const hash = hashAt(node, i);
    if (!claim(namesOf(tree), NARROW, hash)) unreachable();
    const other = load<u32>(atTag) as usize;
    if (other == 0) {
      store<u32>(atValue, SILENT | i);
      insert(namesOf(tree), hash, node as u32);
    } else if (other == node && !liesAt(node, load<u32>(atValue) & ~SILENT, hash)) {
      store<u32>(atValue, (load<u32>(atValue) & SILENT) | i);
    } else {
      setFlag(node, MIXED);
    }
  }
}

/** Length of the list's longest start with at most `room` hashes that name nothing yet. */
export function takeWithin(tree: usize, hashes: usize, count: u32, room: u32): u32 {
  for (let i: u32 = 0; i < count; i++) {
    const known = find(namesOf(tree), NARROW, load<u64>(hashes + ((i as usize) << 3))) != 0;
    if (known && (load<u32>(atValue) & SILENT) == 0) continue;
    if (room == 0) return i;
    room--;
  }
  return count;
}

/** Follows a block that moved from `node` to `to`; `names` says that its hash is a name from now on. */
export function moveBlock(
  tree: usize,
  node: usize,
  from: u32,
  to: usize,
  position: u32,
  names: bool,
): void {
  const hash = hashAt(to, position);
  if (names) {
    setName(tree, hash, to, position);
    return;
  }
  if ((find(namesOf(tree), NARROW, hash) as usize) != node) return;
  const value = load<u32>(atValue);
  if ((value & ~SILENT) != from) return;
  store<u32>(atTag, to as u32);
  store<u32>(atValue, (value & SILENT) | position);
  if ((value & SILENT) != 0) return;
  addName(to);
  dropName(tree, node);
}

/** Whether the run has `hash`; `place` is its last place there. */
export function contains(tree: usize, node: usize, hash: u64): bool {
  if (has(node, MIXED | UNINDEXED)) {
    const found = scanFor(node, hash);
    place = found as u32;
    return found >= 0;
  }
  if ((find(namesOf(tree), NARROW, hash) as usize) != node) return false;
  place = load<u32>(atValue) & ~SILENT;
  return liesAt(node, place, hash);
}

/** Reads what `count` hashes name: first all entries, then all nodes, then the ends of all runs. The list is written over. */
export function treeLookAhead(tree: usize, hashes: usize, count: usize): void {
  const names = namesOf(tree);
  lookAhead(names, hashes, count, 8);
  const end = hashes + (count << 3);
  let sum: u64 = 0;
  for (let at = hashes; at < end; at += 8) {
    const node = find(names, NARROW, load<u64>(at));
    store<u32>(at, node);
    if (node != 0) sum += lengthOf(node);
  }
  for (let at = hashes; at < end; at += 8) {
    const node = load<u32>(at) as usize;
    if (node != 0 && lengthOf(node) != 0) sum += hashAt(node, lengthOf(node) - 1);
  }
  seen = sum;
}

/** The node that has `hash` and is named by it, directly or above it; 0 where there is none. */
export function resolve(tree: usize, hash: u64): usize {
  const node = find(namesOf(tree), NARROW, hash) as usize;
  if (node == 0) return 0;
  const value = load<u32>(atValue);
  if ((value & SILENT) != 0) return 0;
  if (has(node, MIXED | UNINDEXED)) {
    const position = scanFor(node, hash);
    place = position as u32;
    if (position >= 0) return node;
  } else {
    place = value;
    if (liesAt(node, place, hash)) return node;
  }
  // Below, too, a node with an entry for each of its blocks would be named by it.
  const found = searchBelow(node, hash);
  if (found != 0) setName(tree, hash, found, place);
  return found;
}

function searchBelow(top: usize, hash: u64): usize {
  let node = childOf(top);
  let searched: u32 = 0;
  let found: usize = 0;
  let foundDepth: i32 = 0x7fffffff;
  let depth: i32 = 1;
  while (node != 0 && node != top && searched++ < MAX_SEARCHED) {
    if (has(node, MIXED | UNINDEXED) && depth < foundDepth) {
      const position = scanFor(node, hash);
      if (position >= 0) {
        found = node;
        foundDepth = depth;
        place = position as u32;
      }
    }
    const child = childOf(node);
    if (child != 0) {
      node = child;
      depth++;
      continue;
    }
    while (node != top && nextOf(node) == 0) {
      node = parentOf(node);
      depth--;
    }
    if (node != top) node = nextOf(node);
  }
  return found;
}
