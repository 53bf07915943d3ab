// What the TypeScript side calls. A u64 crosses as two u32 (low, high), since an i64 would cross as a
// bigint and cost an allocation a call.

import { hash64 } from './xxh3';
import * as encode from './encode';
import * as list from './list';
import { setSecret as setMixSecret } from './mix';
import * as dump from './dump';
import * as lowerTier from './lower-tier';
import * as namespaces from './namespaces';
import * as routerTree from './router-tree';
import * as table from './table';

export { allocate, blockShift, release, roomLeft } from './memory';
export { readEvents } from './events';
export { readBigrams, readHashes, readTokens } from './msgpack';
export { addText } from './texts';
export { putBlocks } from './encode';
export { clearTable, freeTable, LOOKED_AHEAD_FROM, newTable } from './table';
export { countStored, releaseRemoved } from './counts';
export { forgetAmbiguous, forgetNamespace, markUnsalted } from './namespaces';
export { freeTree, newTree, treeClear, treeMatch, treeRemove } from './router-tree';
export { treeLookAhead } from './names';
export { clearTier, freeTier, newTier, tierRemove } from './lower-tier';
export { dumpedEvents, startTierDump, startTreeDump, tierDumpEnded, treeDumpEnded } from './dump';

// @ts-ignore: decorator
@inline
function u64Of(low: u32, high: u32): u64 {
  return ((high as u64) << 32) | (low as u64);
}

export function setSecret(low: u32, high: u32): void {
  setMixSecret(u64Of(low, high));
}

/** XXH3-64 of `length` bytes, to `out`. */
export function xxh3(at: usize, length: usize, seedLow: u32, seedHigh: u32, out: usize): void {
  store<u64>(out, hash64(at, length, u64Of(seedLow, seedHigh)));
}

export function hashWindows(
  tokens: usize,
  windowBytes: usize,
  strideBytes: usize,
  count: usize,
  seedLow: u32,
  seedHigh: u32,
  out: usize,
): void {
  list.hashWindows(tokens, windowBytes, strideBytes, count, u64Of(seedLow, seedHigh), out);
}

export function repeats(at: usize, count: usize, hasParent: u32, low: u32, high: u32): u32 {
  return list.repeats(at, count, hasParent, u64Of(low, high));
}

export function putU64(at: usize, low: u32, high: u32): usize {
  return encode.putU64(at, u64Of(low, high));
}

export function lookAhead(handle: usize, keys: usize, count: usize): void {
  table.lookAhead(handle, keys, count, 8);
}

export function tagOf(handle: usize, low: u32, high: u32): u32 {
  return table.tagOf(handle, u64Of(low, high));
}

export function namespaceOf(handle: usize, low: u32, high: u32, out: usize): u32 {
  return namespaces.namespaceOf(handle, u64Of(low, high), out);
}

export function markNamespace(
  handle: usize,
  at: usize,
  count: usize,
  valueLow: u32,
  valueHigh: u32,
  stamp: u32,
): void {
  namespaces.markNamespace(handle, at, count, u64Of(valueLow, valueHigh), stamp);
}

export function putStored(
  at: usize,
  template: usize,
  idLow: u32,
  idHigh: u32,
  hasParent: u32,
  parentLow: u32,
  parentHigh: u32,
  hashes: usize,
  tokensHashes: usize,
  count: u32,
  dpRank: u32,
): usize {
  const parent = u64Of(parentLow, parentHigh);
  const id = u64Of(idLow, idHigh);
  return encode.putStored(at, template, id, hasParent, parent, hashes, tokensHashes, count, dpRank);
}

export function putRemoved(
  at: usize,
  template: usize,
  idLow: u32,
  idHigh: u32,
  hashes: usize,
  count: u32,
  dpRank: u32,
): usize {
  return encode.putRemoved(at, template, u64Of(idLow, idHigh), hashes, count, dpRank);
}

export function treeStore(
  tree: usize,
  hasParent: u32,
  parentLow: u32,
  parentHigh: u32,
  hashes: usize,
  tokens: usize,
  count: u32,
  maxLive: u32,
): u32 {
  const parent = u64Of(parentLow, parentHigh);
  return routerTree.treeStore(tree, hasParent, parent, hashes, tokens, count, maxLive);
}

export function tierStore(
  tier: usize,
  hasParent: u32,
  parentLow: u32,
  parentHigh: u32,
  hashes: usize,
  tokens: usize,
  count: u32,
  maxBlocks: u32,
): u32 {
  const parent = u64Of(parentLow, parentHigh);
  return lowerTier.tierStore(tier, hasParent, parent, hashes, tokens, count, maxBlocks);
}

export function tierMatch(
  tier: usize,
  hasParent: u32,
  parentLow: u32,
  parentHigh: u32,
  tokens: usize,
  count: u32,
  out: usize,
): u32 {
  return lowerTier.tierMatch(tier, hasParent, u64Of(parentLow, parentHigh), tokens, count, out);
}

export function dumpTree(
  tree: usize,
  template: usize,
  at: usize,
  end: usize,
  idLow: u32,
  idHigh: u32,
  dpRank: u32,
): usize {
  return dump.dumpTree(tree, template, at, end, u64Of(idLow, idHigh), dpRank);
}

export function dumpTier(
  tier: usize,
  template: usize,
  at: usize,
  end: usize,
  idLow: u32,
  idHigh: u32,
  dpRank: u32,
): usize {
  return dump.dumpTier(tier, template, at, end, u64Of(idLow, idHigh), dpRank);
}
