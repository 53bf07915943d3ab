// One lower tier of one rank as a stock router holds it: edges (parent hash, tokens hash) → block hash.
// A parent need not be there; an edge that is there wins over a later one.
//
// tier (64 bytes)
// [0] blocks  table, key block hash, tag record       [12] used    records ever taken
// [4] edges   table, key of the edge, tag record      [16] free    record given back last
// [8] chunks  directory of record memory              [20] cursor  next record of a dump
//
// record (32 bytes, numbered from 1): block hash u64, parent u64, tokens hash u64, state u32, next free u32

import { allocate, release, roomLeft } from './memory';
import { mix } from './mix';
import { claim, clearTable, find, freeTable, insert, NARROW, newTable, removeFound, atTag } from './table';

const TIER_SHIFT: u32 = 6;
const EDGES: usize = 4;
const CHUNKS: usize = 8;
const USED: usize = 12;
const FREE: usize = 16;
export const TIER_CURSOR: usize = 20;

const DIRECTORY_SHIFT: u32 = 16;
const CHUNK_SHIFT: u32 = 17;
const RECORDS_SHIFT: u32 = 12;
const MAX_RECORDS: u32 = 1 << (DIRECTORY_SHIFT - 2 + RECORDS_SHIFT);
const SPARE_BYTES: u32 = 1 << 26;

export const RECORD_FREE: u32 = 0;
export const RECORD_ROOT: u32 = 1;
export const RECORD_CHILD: u32 = 2;

/** A tier, or 0 where there is no memory for one. */
export function newTier(): usize {
  const tier = allocate(TIER_SHIFT);
  const chunks = allocate(DIRECTORY_SHIFT);
  const blocks = newTable(NARROW);
  const edges = newTable(NARROW);
  if (tier == 0 || chunks == 0 || blocks == 0 || edges == 0) return 0;
  memory.fill(tier, 0, 64);
  memory.fill(chunks, 0, (1 as usize) << DIRECTORY_SHIFT);
  store<u32>(tier, blocks as u32);
  store<u32>(tier, edges as u32, EDGES);
  store<u32>(tier, chunks as u32, CHUNKS);
  return tier;
}

export function freeTier(tier: usize): void {
  clearTier(tier);
  freeTable(load<u32>(tier));
  freeTable(load<u32>(tier, EDGES));
  release(load<u32>(tier, CHUNKS), DIRECTORY_SHIFT);
  release(tier, TIER_SHIFT);
}

export function clearTier(tier: usize): void {
  clearTable(load<u32>(tier));
  clearTable(load<u32>(tier, EDGES));
  const chunks = load<u32>(tier, CHUNKS) as usize;
  const count = (load<u32>(tier, USED) + (1 << RECORDS_SHIFT) - 1) >> RECORDS_SHIFT;
  for (let i: u32 = 0; i < count; i++) release(load<u32>(chunks + (i << 2)), CHUNK_SHIFT);
  store<u32>(tier, 0, USED);
  store<u32>(tier, 0, FREE);
  store<u32>(tier, 1, TIER_CURSOR);
}

/** Address of a record. */
// @ts-ignore: decorator
@inline
export function recordAt(tier: usize, record: u32): usize {
  const index = record - 1;
  const chunks = load<u32>(tier, CHUNKS) as usize;
  const chunk = load<u32>(chunks + ((index >> RECORDS_SHIFT) << 2)) as usize;
  return chunk + (((index & ((1 << RECORDS_SHIFT) - 1)) as usize) << 5);
}

export function usedRecords(tier: usize): u32 {
  return load<u32>(tier, USED);
}

/** A record's number, 0 where there is no memory. */
function takeRecord(tier: usize): u32 {
  const free = load<u32>(tier, FREE);
  if (free != 0) {
    store<u32>(tier, load<u32>(recordAt(tier, free), 28), FREE);
    return free;
  }
  const used = load<u32>(tier, USED);
  if (used == MAX_RECORDS || roomLeft() < SPARE_BYTES) return 0;
  if ((used & ((1 << RECORDS_SHIFT) - 1)) == 0) {
    const chunk = allocate(CHUNK_SHIFT);
    if (chunk == 0) return 0;
    const chunks = load<u32>(tier, CHUNKS) as usize;
    store<u32>(chunks + ((used >> RECORDS_SHIFT) << 2), chunk as u32);
  }
  store<u32>(tier, used + 1, USED);
  return used + 1;
}

/** The secret goes in first: nobody can choose edges whose keys meet. */
// @ts-ignore: decorator
@inline
function edgeKey(state: u32, parent: u64, tokensHash: u64): u64 {
  const above = state == RECORD_ROOT ? 0 : mix(parent);
  return mix(tokensHash) + above * 0x9e3779b97f4a7c15;
}

/** Applies a store, of at most `maxBlocks` in all, and returns how many blocks the bound kept out. */
export function tierStore(
  tier: usize,
  hasParent: u32,
  parent: u64,
  hashes: usize,
  tokens: usize,
  count: u32,
  maxBlocks: u32,
): u32 {
  const blocks = load<u32>(tier) as usize;
  const edges = load<u32>(tier, EDGES) as usize;
  let state = hasParent != 0 ? RECORD_CHILD : RECORD_ROOT;
  if (hasParent == 0) parent = 0;
  for (let i: u32 = 0; i < count; i++) {
    const hash = load<u64>(hashes + ((i as usize) << 3));
    const tokensHash = load<u64>(tokens + ((i as usize) << 3));
    const key = edgeKey(state, parent, tokensHash);
    const edge = find(edges, NARROW, key);
    const known = find(blocks, NARROW, hash);
    if (edge != known) return 0;
    if (edge == 0) {
      if (load<u32>(blocks) >= maxBlocks) return count - i;
      const record = takeRecord(tier);
      if (record == 0 || !claim(edges, NARROW, key)) return count - i;
      insert(edges, key, record);
      if (!claim(blocks, NARROW, hash)) unreachable();
      insert(blocks, hash, record);
      const at = recordAt(tier, record);
      store<u64>(at, hash);
      store<u64>(at, parent, 8);
      store<u64>(at, tokensHash, 16);
      store<u32>(at, state, 24);
    }
    parent = hash;
    state = RECORD_CHILD;
  }
  return 0;
}

export function tierRemove(tier: usize, hashes: usize, count: u32): void {
  const end = hashes + ((count as usize) << 3);
  for (; hashes < end; hashes += 8) {
    const record = find(load<u32>(tier), NARROW, load<u64>(hashes));
    if (record == 0) continue;
    removeFound(load<u32>(tier));
    const at = recordAt(tier, record);
    const key = edgeKey(load<u32>(at, 24), load<u64>(at, 8), load<u64>(at, 16));
    if (find(load<u32>(tier, EDGES), NARROW, key) == record) removeFound(load<u32>(tier, EDGES));
    store<u32>(at, RECORD_FREE, 24);
    store<u32>(at, load<u32>(tier, FREE), 28);
    store<u32>(tier, record, FREE);
  }
}

/** How many blocks of a list follow on `parent`, each on the one before; the last hash goes to `out`. */
export function tierMatch(
  tier: usize,
  hasParent: u32,
  parent: u64,
  tokens: usize,
  count: u32,
  out: usize,
): u32 {
  let state = hasParent != 0 ? RECORD_CHILD : RECORD_ROOT;
  if (hasParent == 0) parent = 0;
  let matched: u32 = 0;
  for (; matched < count; matched++) {
    const tokensHash = load<u64>(tokens + ((matched as usize) << 3));
    const record = find(load<u32>(tier, EDGES), NARROW, edgeKey(state, parent, tokensHash));
    if (record == 0) break;
    parent = load<u64>(recordAt(tier, record));
    state = RECORD_CHILD;
  }
  store<u64>(out, parent);
  return matched;
}
