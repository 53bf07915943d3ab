// The device tier of one rank as a stock router holds it: a tree of runs of blocks.
//
// A store walks it by tokens hashes; blocks that are there keep their first hash. A remove cuts a run:
// the blocks from there on stay behind in it, not held and under their hashes, and what hung
// below is detached. A detached node lives on while a hash names it, and takes stores that nobody
// sees.
//
// tree (64 bytes)
// [0]  names     table, names.ts                      [28] shells     detached nodes without blocks
// [4]  children  table, tag child                     [32] nextSerial u64
// [8]  root                                           [40] pending    nodes that may go
// [12] live      blocks held and attached             [44] cursorNode [48] cursorPosition  of a dump
// [16] total     blocks of all runs                   [52] retained, see newTree
// [20] deadHead, [24] deadTail  nodes with dead blocks, oldest first

import { allocate, release, roomLeft } from './memory';
import { mix } from './mix';
import {
  claim,
  clearTable,
  find,
  freeTable,
  insert,
  NARROW,
  newTable,
  removeFound,
  atTag,
} from './table';
import {
  appendBlocks,
  ATTACHED,
  blockAt,
  childOf,
  clearFlag,
  endsWith,
  giveRun,
  has,
  hashAt,
  heldOf,
  IN_DEAD,
  IN_PENDING,
  IN_SHELLS,
  lengthOf,
  MIXED,
  nextOf,
  NODE_SHIFT,
  parentOf,
  resizeRun,
  setFlag,
  tokensAt,
  UNINDEXED,
  WAS_PARENT,
} from './runs';
import {
  contains,
  dropHash,
  forgetBlock,
  maybePending,
  moveBlock,
  nameBlocks,
  place,
  reindex,
  resolve,
  takeWithin,
  unindex,
} from './names';


const TREE_SHIFT: u32 = 6;
const CHILDREN: usize = 4;
const ROOT: usize = 8;
const LIVE: usize = 12;
const TOTAL: usize = 16;
const DEAD_HEAD: usize = 20;
const DEAD_TAIL: usize = 24;
const SHELLS: usize = 28;
const NEXT_SERIAL: usize = 32;
const PENDING: usize = 40;
const CURSOR_NODE: usize = 44;
const CURSOR_POSITION: usize = 48;
const RETAINED: usize = 52;

/** Blocks forgotten a call beyond those it brings, so that no call takes long. */
const RECLAIMED_AT_ONCE: u32 = 1024;
/** No store is begun with less address space than the largest one may take. */
const SPARE_BYTES: u32 = 1 << 26;

function newNode(tree: usize): usize {
  const node = allocate(NODE_SHIFT);
  if (node == 0) unreachable();
  memory.fill(node, 0, 64);
  const serial = load<u64>(tree, NEXT_SERIAL);
  store<u64>(node, serial, 48);
  store<u64>(tree, serial + 1, NEXT_SERIAL);
  return node;
}

/**
 * A tree, or 0 where there is no memory for one. It keeps `retained` blocks that are not held, as the router
 * does until its next sweep, or a quarter of what is held; then the oldest are forgotten.
 */
export function newTree(retained: u32): usize {
  const tree = allocate(TREE_SHIFT);
  if (tree == 0) return 0;
  memory.fill(tree, 0, 64);
  const names = newTable(NARROW);
  const children = newTable(NARROW);
  if (names == 0 || children == 0) return 0;
  store<u32>(tree, names as u32);
  store<u32>(tree, children as u32, CHILDREN);
  store<u32>(tree, retained, RETAINED);
  const root = newNode(tree);
  setFlag(root, ATTACHED);
  store<u32>(tree, root as u32, ROOT);
  return tree;
}

/** Ends the tree's life. */
export function freeTree(tree: usize): void {
  emptyTree(tree, 0);
  release(load<u32>(tree, ROOT), NODE_SHIFT);
  freeTable(load<u32>(tree));
  freeTable(load<u32>(tree, CHILDREN));
  release(tree, TREE_SHIFT);
}

// --- children

/** The secret goes in first: nobody can choose tokens whose keys meet. */
// @ts-ignore: decorator
@inline
function childKey(node: usize, tokensHash: u64): u64 {
  return mix(tokensHash) + load<u64>(node, 48) * 0x9e3779b97f4a7c15;
}

// @ts-ignore: decorator
@inline
function findChild(tree: usize, node: usize, tokensHash: u64): usize {
  if (!has(node, WAS_PARENT)) return 0;
  return find(load<u32>(tree, CHILDREN), NARROW, childKey(node, tokensHash));
}

/** Links a node with a first block below `parent`, where no other child has that block. */
function link(tree: usize, parent: usize, node: usize): void {
  const table = load<u32>(tree, CHILDREN);
  const key = childKey(parent, tokensAt(node, 0));
  if (!claim(table, NARROW, key)) unreachable();
  if (load<u32>(atTag) == 0) insert(table, key, node as u32);
  else store<u32>(atTag, node as u32);
  const first = childOf(parent);
  store<u32>(node, parent as u32, 16);
  store<u32>(node, first as u32, 24);
  store<u32>(node, 0, 28);
  if (first != 0) store<u32>(first, node as u32, 28);
  store<u32>(parent, node as u32, 20);
  setFlag(parent, WAS_PARENT);
}

function unlink(tree: usize, node: usize): void {
  const parent = parentOf(node);
  const table = load<u32>(tree, CHILDREN);
  if (find(table, NARROW, childKey(parent, tokensAt(node, 0))) != 0) removeFound(table);
  const next = nextOf(node);
  const previous = load<u32>(node, 28) as usize;
  if (next != 0) store<u32>(next, previous as u32, 28);
  if (previous != 0) store<u32>(previous, next as u32, 24);
  else store<u32>(parent, next as u32, 20);
  store<u32>(node, 0, 16);
  store<u32>(node, 0, 24);
  store<u32>(node, 0, 28);
}

/** The node after all below `node`, in the order of a walk from the root; 0 at its end. */
export function afterSubtree(node: usize): usize {
  while (node != 0 && nextOf(node) == 0) node = parentOf(node);
  return node == 0 ? 0 : nextOf(node);
}

/** Takes all that hangs below `node` out of the tree. */
function detachChildren(tree: usize, node: usize): void {
  for (let child = childOf(node); child != 0; child = childOf(node)) {
    if (has(node, ATTACHED)) markDetached(tree, child);
    unlink(tree, child);
    maybePending(tree, child);
  }
}

function markDetached(tree: usize, top: usize): void {
  const cursor = load<u32>(tree, CURSOR_NODE) as usize;
  const after: usize = cursor == 0 ? 0 : afterSubtree(top);
  let node = top;
  while (true) {
    store<u32>(tree, load<u32>(tree, LIVE) - heldOf(node), LIVE);
    clearFlag(node, ATTACHED);
    relist(tree, node);
    if (node == cursor) moveCursor(tree, after, 0);
    if (childOf(node) != 0) {
      node = childOf(node);
      continue;
    }
    while (node != top && nextOf(node) == 0) node = parentOf(node);
    if (node == top) return;
    node = nextOf(node);
  }
}

// @ts-ignore: decorator
@inline
function moveCursor(tree: usize, node: usize, position: u32): void {
  store<u32>(tree, node as u32, CURSOR_NODE);
  store<u32>(tree, position, CURSOR_POSITION);
}

// --- what is held, and what is not

function setHeld(tree: usize, node: usize, held: u32): void {
  if (has(node, ATTACHED)) {
    store<u32>(tree, load<u32>(tree, LIVE) + held - heldOf(node), LIVE);
  }
  store<u32>(node, held, 12);
  relist(tree, node);
}

/** Puts a node on the list that its state asks for. */
function relist(tree: usize, node: usize): void {
  const isAttached = has(node, ATTACHED);
  const length = lengthOf(node);
  let wanted: u32 = 0;
  if (length != 0 && (!isAttached || heldOf(node) < length)) wanted = IN_DEAD;
  else if (length == 0 && !isAttached) wanted = IN_SHELLS;
  if (wanted == (load<u32>(node, 36) & (IN_DEAD | IN_SHELLS))) return;
  unlist(tree, node);
  if (wanted == IN_DEAD) {
    const tail = load<u32>(tree, DEAD_TAIL) as usize;
    store<u32>(node, tail as u32, 40);
    if (tail != 0) store<u32>(tail, node as u32, 44);
    else store<u32>(tree, node as u32, DEAD_HEAD);
    store<u32>(tree, node as u32, DEAD_TAIL);
  } else if (wanted == IN_SHELLS) {
    const head = load<u32>(tree, SHELLS) as usize;
    store<u32>(node, head as u32, 44);
    if (head != 0) store<u32>(head, node as u32, 40);
    store<u32>(tree, node as u32, SHELLS);
  }
  setFlag(node, wanted);
}

function unlist(tree: usize, node: usize): void {
  if (!has(node, IN_DEAD | IN_SHELLS)) return;
  const previous = load<u32>(node, 40) as usize;
  const next = load<u32>(node, 44) as usize;
  if (next != 0) store<u32>(next, previous as u32, 40);
  else if (has(node, IN_DEAD)) store<u32>(tree, previous as u32, DEAD_TAIL);
  if (previous != 0) store<u32>(previous, next as u32, 44);
  else if (has(node, IN_DEAD)) store<u32>(tree, next as u32, DEAD_HEAD);
  else store<u32>(tree, next as u32, SHELLS);
  store<u32>(node, 0, 40);
  store<u32>(node, 0, 44);
  clearFlag(node, IN_DEAD | IN_SHELLS);
}

function addTotal(tree: usize, blocks: u32): void {
  store<u32>(tree, load<u32>(tree, TOTAL) + blocks, TOTAL);
}

/** Frees what nothing reaches any more, children of what goes included. */
function freePending(tree: usize): void {
  while (true) {
    const node = load<u32>(tree, PENDING) as usize;
    if (node == 0) return;
    store<u32>(tree, load<u32>(node, 56), PENDING);
    clearFlag(node, IN_PENDING);
    if (has(node, ATTACHED) || load<u32>(node, 32) != 0 || parentOf(node) != 0) continue;
    detachChildren(tree, node);
    const length = lengthOf(node);
    if (!has(node, UNINDEXED)) for (let i: u32 = 0; i < length; i++) forgetBlock(tree, node, i);
    unlist(tree, node);
    freeNode(tree, node);
  }
}

function freeNode(tree: usize, node: usize): void {
  addTotal(tree, 0 - lengthOf(node));
  if (load<u32>(node) != 0) giveRun(load<u32>(node), load<u32>(node, 4));
  release(node, NODE_SHIFT);
}

/** Forgets the oldest dead blocks while there are more than `limit`. */
function reclaim(tree: usize, limit: u32, budget: u32): void {
  while (load<u32>(tree, TOTAL) - load<u32>(tree, LIVE) > limit && budget != 0) {
    const node = load<u32>(tree, DEAD_HEAD) as usize;
    if (node == 0) return;
    const length = lengthOf(node);
    const kept = has(node, ATTACHED) ? heldOf(node) : 0;
    const dropped = min(length - kept, budget);
    budget -= dropped;
    if (dropped == length) {
      // Its place in the tree goes by its first block.
      if (has(node, ATTACHED)) markDetached(tree, node);
      if (parentOf(node) != 0) unlink(tree, node);
      detachChildren(tree, node);
    }
    if (!has(node, UNINDEXED)) {
      for (let i = length - dropped; i < length; i++) forgetBlock(tree, node, i);
    }
    store<u32>(node, length - dropped, 8);
    if (heldOf(node) > length - dropped) store<u32>(node, length - dropped, 12);
    addTotal(tree, 0 - dropped);
    resizeRun(node, length - dropped, true);
    relist(tree, node);
    maybePending(tree, node);
  }
}

// --- stores

/**
 * Applies a store of at most `maxLive` blocks in all; blocks that the rules give no place are left out.
 * Returns how many blocks the bound kept out.
 */
export function treeStore(
  tree: usize,
  hasParent: u32,
  parent: u64,
  hashes: usize,
  tokens: usize,
  count: u32,
  maxLive: u32,
): u32 {
  const live = load<u32>(tree, LIVE);
  const room = maxLive > live ? maxLive - live : 0;
  let taken = count;
  if (count > room) taken = takeWithin(tree, hashes, count, room);
  if (roomLeft() < SPARE_BYTES) taken = 0;
  if (taken != 0 || count == 0) storeBlocks(tree, hasParent, parent, hashes, tokens, taken);
  finish(tree, taken);
  return count - taken;
}

// @ts-ignore: decorator
@inline
function maxDead(tree: usize): u32 {
  return max(load<u32>(tree, RETAINED), load<u32>(tree, LIVE) >> 2);
}

function finish(tree: usize, count: u32): void {
  freePending(tree);
  const limit = maxDead(tree);
  if (load<u32>(tree, TOTAL) - load<u32>(tree, LIVE) <= limit) return;
  reclaim(tree, limit, RECLAIMED_AT_ONCE + 4 * count);
  freePending(tree);
}

function storeBlocks(
  tree: usize,
  hasParent: u32,
  parent: u64,
  hashes: usize,
  tokens: usize,
  count: u32,
): void {
  let node = load<u32>(tree, ROOT) as usize;
  if (hasParent != 0) {
    node = resolve(tree, parent);
    if (node == 0) return;
    if (place >= heldOf(node)) {
      dropHash(tree, parent);
      return;
    }
    if (continueRun(tree, node, place, hashes, tokens, count)) return;
  }
  let last = parent;
  let hasLast = hasParent != 0;
  while (count != 0) {
    if (hasLast && !endsWith(node, last)) {
      if (contains(tree, node, last)) {
        if (continueRun(tree, node, place, hashes, tokens, count)) return;
        continue;
      }
      // The place has another hash, so what follows hangs under a name that leads nowhere.
      node = resolve(tree, last);
      if (node == 0) return;
      continue;
    }
    const child = findChild(tree, node, load<u64>(tokens));
    if (child == 0) {
      append(tree, node, hasLast, hashes, tokens, count);
      return;
    }
    if (has(child, UNINDEXED)) reindex(tree, child);
    const match = matchLength(child, tokens, count);
    const length = lengthOf(child);
    if (match < length) {
      leaveRun(tree, child, match, hashes, tokens, count);
      return;
    }
    if (heldOf(child) != length) setHeld(tree, child, length);
    nameBlocks(tree, child, 0, hashes, length);
    last = load<u64>(hashes + ((length as usize) << 3) - 8);
    hasLast = true;
    hashes += (length as usize) << 3;
    tokens += (length as usize) << 3;
    count -= length;
    node = child;
  }
}

/** First blocks of the list that the run has, too, by tokens. */
function matchLength(node: usize, tokens: usize, count: u32): u32 {
  const limit = min(lengthOf(node), count);
  let match: u32 = 0;
  while (match < limit && tokensAt(node, match) == load<u64>(tokens + ((match as usize) << 3))) {
    match++;
  }
  return match;
}

/** Takes blocks that a run has after `position`; where it goes on otherwise it is split there. */
function continueRun(
  tree: usize,
  node: usize,
  position: u32,
  hashes: usize,
  tokens: usize,
  count: u32,
): bool {
  const start = position + 1;
  const rest = lengthOf(node) - start;
  if (rest == 0) return false;
  const compared = min(rest, count);
  let same: u32 = 0;
  while (same < compared) {
    const at = blockAt(node, start + same);
    const offset = (same as usize) << 3;
    if (load<u64>(at) != load<u64>(hashes + offset)) break;
    if (load<u64>(at, 8) != load<u64>(tokens + offset)) break;
    same++;
  }
  if (same != compared || (count > rest && has(node, WAS_PARENT))) {
    split(tree, node, start);
    return false;
  }
  if (count > rest) extendRun(tree, node, hashes, tokens, rest, count);
  else if (heldOf(node) < start + count) setHeld(tree, node, start + count);
  nameBlocks(tree, node, start, hashes, count);
  return true;
}

/** Appends the blocks from `skip` on, all of the run being held then. */
function extendRun(
  tree: usize,
  node: usize,
  hashes: usize,
  tokens: usize,
  skip: u32,
  count: u32,
): void {
  const offset = (skip as usize) << 3;
  appendBlocks(node, hashes + offset, tokens + offset, count - skip);
  addTotal(tree, count - skip);
  setHeld(tree, node, lengthOf(node));
}

/** The node has no child for these blocks: they lengthen its run, or become a child. */
function append(
  tree: usize,
  node: usize,
  mayExtend: bool,
  hashes: usize,
  tokens: usize,
  count: u32,
): void {
  const length = lengthOf(node);
  if (mayExtend && !has(node, WAS_PARENT) && heldOf(node) == length) {
    extendRun(tree, node, hashes, tokens, 0, count);
    nameBlocks(tree, node, length, hashes, count);
    return;
  }
  const child = newNode(tree);
  if (has(node, ATTACHED)) setFlag(child, ATTACHED);
  appendBlocks(child, hashes, tokens, count);
  addTotal(tree, count);
  link(tree, node, child);
  setHeld(tree, child, count);
  nameBlocks(tree, child, 0, hashes, count);
}

/** A store that ends, or turns off, within a run. */
function leaveRun(
  tree: usize,
  node: usize,
  match: u32,
  hashes: usize,
  tokens: usize,
  count: u32,
): void {
  if (match == count) {
    if (heldOf(node) < match) setHeld(tree, node, match);
    nameBlocks(tree, node, 0, hashes, match);
    return;
  }
  split(tree, node, match);
  setHeld(tree, node, match);
  nameBlocks(tree, node, 0, hashes, match);
  const offset = (match as usize) << 3;
  append(tree, node, false, hashes + offset, tokens + offset, count - match);
}

/** Moves the blocks from `at` on, and all below them, to a child of its own. */
function split(tree: usize, node: usize, at: u32): void {
  const length = lengthOf(node);
  const held = heldOf(node);
  const suffix = newNode(tree);
  const moved = length - at;
  resizeRun(suffix, moved, false);
  memory.copy(blockAt(suffix, 0), blockAt(node, at), (moved as usize) << 4);
  store<u32>(suffix, moved, 8);
  if (has(node, MIXED)) setFlag(suffix, MIXED);
  if (has(node, ATTACHED)) setFlag(suffix, ATTACHED);
  adoptChildren(node, suffix);
  store<u32>(node, at, 8);
  resizeRun(node, at, true);
  const suffixHeld = held > at ? held - at : 0;
  store<u32>(suffix, suffixHeld, 12);
  store<u32>(node, min(held, at), 12);
  link(tree, node, suffix);
  relist(tree, node);
  relist(tree, suffix);
  for (let i: u32 = 0; i < moved; i++) {
    moveBlock(tree, node, at + i, suffix, i, i < suffixHeld);
  }
  if ((load<u32>(tree, CURSOR_NODE) as usize) == node) {
    const position = load<u32>(tree, CURSOR_POSITION);
    if (position >= at) moveCursor(tree, suffix, position - at);
  }
}

/** The suffix takes the serial with the children, so that their keys stay. */
function adoptChildren(node: usize, suffix: usize): void {
  const serial = load<u64>(suffix, 48);
  store<u64>(suffix, load<u64>(node, 48), 48);
  store<u64>(node, serial, 48);
  const first = childOf(node);
  store<u32>(suffix, first as u32, 20);
  store<u32>(node, 0, 20);
  if (first == 0) return;
  setFlag(suffix, WAS_PARENT);
  for (let child = first; child != 0; child = nextOf(child)) store<u32>(child, suffix as u32, 16);
}

// --- removes

/** Applies a remove: each run is cut before the first of its blocks that the list names. */
export function treeRemove(tree: usize, hashes: usize, count: u32): void {
  const end = hashes + ((count as usize) << 3);
  let node: usize = 0;
  let at: u32 = 0;
  let first: u32 = 0xffffffff;
  for (; hashes < end; hashes += 8) {
    const hash = load<u64>(hashes);
    if (node != 0 && at != 0 && !has(node, MIXED) && hashAt(node, at - 1) == hash) {
      // A chain is mostly removed from its end to its start.
      at--;
    } else if (node != 0 && contains(tree, node, hash)) {
      // What lies in the run at hand is taken there, wherever the hash was stored last.
      at = place;
    } else {
      if (node != 0) cut(tree, node, first);
      node = resolve(tree, hash);
      first = 0xffffffff;
      at = place;
      if (node == 0) continue;
    }
    if (at < first) first = at;
  }
  if (node != 0) cut(tree, node, first);
  finish(tree, count);
}

function cut(tree: usize, node: usize, position: u32): void {
  const held = heldOf(node);
  if (position >= held) {
    dropHash(tree, hashAt(node, position));
  } else {
    setHeld(tree, node, position);
    if (position == 0 && !has(node, MIXED)) {
      unindex(tree, node);
    } else {
      const end = has(node, MIXED) ? lengthOf(node) : held;
      for (let i = position; i < end; i++) dropHash(tree, hashAt(node, i));
    }
  }
  if (heldOf(node) < lengthOf(node)) detachChildren(tree, node);
}

// --- clears

/** Lets go of everything; the first runs stay behind, not held. */
export function treeClear(tree: usize): void {
  emptyTree(tree, load<u32>(tree, RETAINED));
}

function emptyTree(tree: usize, retained: u32): void {
  clearTable(load<u32>(tree));
  moveCursor(tree, 0, 0);
  const root = load<u32>(tree, ROOT) as usize;
  let keptNodes: usize = 0;
  for (let node = childOf(root); node != 0; ) {
    const next = nextOf(node);
    if (lengthOf(node) <= retained) {
      retained -= lengthOf(node);
      // What hangs below goes; the node itself is linked anew.
      freeBelow(tree, node);
      unlist(tree, node);
      store<u32>(node, keptNodes as u32, 24);
      keptNodes = node;
    } else {
      freeBelow(tree, node);
      unlist(tree, node);
      freeNode(tree, node);
    }
    node = next;
  }
  freeDetached(tree, DEAD_HEAD);
  freeDetached(tree, SHELLS);
  clearTable(load<u32>(tree, CHILDREN));
  store<u32>(root, 0, 20);
  store<u32>(tree, 0, LIVE);
  while (keptNodes != 0) {
    const node = keptNodes;
    keptNodes = nextOf(node);
    leaveBehind(node);
    link(tree, root, node);
    relist(tree, node);
  }
}

/** Frees all nodes below one, deepest first. */
function freeBelow(tree: usize, top: usize): void {
  let node = childOf(top);
  while (node != 0 && node != top) {
    if (childOf(node) != 0) {
      node = childOf(node);
      continue;
    }
    const next = nextOf(node);
    const parent = parentOf(node);
    unlist(tree, node);
    freeNode(tree, node);
    store<u32>(parent, next as u32, 20);
    node = next != 0 ? next : parent;
  }
}

/** Frees the nodes of a list that have no parent, with all below them, until the list is empty. */
function freeDetached(tree: usize, head: usize): void {
  for (let node = load<u32>(tree + head) as usize; node != 0; ) {
    while (parentOf(node) != 0) node = parentOf(node);
    freeBelow(tree, node);
    unlist(tree, node);
    freeNode(tree, node);
    node = load<u32>(tree + head) as usize;
  }
}

/** A run without its rank, and without entries, as those of all are gone. */
function leaveBehind(node: usize): void {
  store<u32>(node, 0, 12);
  store<u32>(node, 0, 32);
  clearFlag(node, MIXED);
  setFlag(node, UNINDEXED);
}

/** How many blocks of a list are held one after the other from the root; the last hash goes to `out`. */
export function treeMatch(tree: usize, tokens: usize, count: u32, out: usize): u32 {
  let node = load<u32>(tree, ROOT) as usize;
  let matched: u32 = 0;
  while (matched < count) {
    node = findChild(tree, node, load<u64>(tokens + ((matched as usize) << 3)));
    if (node == 0) break;
    const held = heldOf(node);
    let position: u32 = 0;
    while (position < held && matched < count) {
      if (tokensAt(node, position) != load<u64>(tokens + ((matched as usize) << 3))) break;
      store<u64>(out, hashAt(node, position));
      position++;
      matched++;
    }
    if (position < lengthOf(node)) break;
  }
  return matched;
}
