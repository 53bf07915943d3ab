// Counts of u64 keys: a narrow table whose tags are the counts. Each call takes a whole list.

import { claim, find, insert, lookAhead, NARROW, removeFound, atTag } from './table';

/** Adds 1 to the count of each hash of a list, for at most `maxEntries` keys; returns how many were refused. */
export function countStored(table: usize, list: usize, count: usize, maxEntries: u32): u32 {
  let refused: u32 = 0;
  const end = list + (count << 3);
  lookAhead(table, list, count, 8);
  for (; list < end; list += 8) {
    const key = load<u64>(list);
    if (!claim(table, NARROW, key)) {
      refused++;
      continue;
    }
    const tag = load<u32>(atTag);
    if (tag == 0) {
      if (load<u32>(table) < maxEntries) insert(table, key, 1);
      else refused++;
    } else if (tag != 0xffffffff) {
      // A count at its limit stays there: the block is then never freed, which is the safe side.
      store<u32>(atTag, tag + 1);
    }
  }
  return refused;
}

/**
 * Takes 1 from the count of each hash of a list and keeps in the list, in order, those that reach 0
 * or were not counted. Returns how many are kept.
 */
export function releaseRemoved(table: usize, list: usize, count: usize): usize {
  const end = list + (count << 3);
  let keep = list;
  lookAhead(table, list, count, 8);
  for (let at = list; at < end; at += 8) {
    const key = load<u64>(at);
    const tag = find(table, NARROW, key);
    if (tag > 1) {
      store<u32>(atTag, tag - 1);
      continue;
    }
    if (tag == 1) removeFound(table);
    store<u64>(keep, key);
    keep += 8;
  }
  return (keep - list) >> 3;
}
