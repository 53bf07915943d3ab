// Looks ahead: what the tables will be asked for by the events just read is loaded for all of them in one
// go, so that the misses of the cache overlap; each lookup later finds its line there. Nothing is decided
// here, and nothing is written.
//
// Which tables   those that the batch before has used, if the one before that did, too: where batches of
//                several ranks take turns, nothing is loaded for the wrong one.

import { mix } from './mix';
import { HALF_WIDE, touch } from './table';

/** Hashes of an event that are looked up ahead: a longer list is walked without waiting between. */
const MAX_HASHES: u32 = 4;

let counts: usize = 0;
let names: usize = 0;
/** No other table has come up since the last call of `mayWarm`. */
let isSteady: bool = false;

/** Keeps the compiler from leaving the loads out. */
export let touched: u32 = 0;

export function noteCounts(table: usize): void {
  if (counts == table) return;
  counts = table;
  isSteady = false;
}

export function noteNames(table: usize): void {
  if (names == table) return;
  names = table;
  isSteady = false;
}

/** To be called before a table's memory is given up. */
export function forgetTable(table: usize): void {
  if (counts == table) counts = 0;
  if (names == table) names = 0;
}

/** Whether looking ahead is of use; to be asked once a batch. */
export function mayWarm(): bool {
  const may = isSteady;
  isSteady = true;
  return may;
}

export function warmParent(hash: u64): void {
  if (names != 0) touched += touch(names, HALF_WIDE, mix(hash));
}

export function warmHashes(list: usize, count: u32): void {
  const end = list + ((min(count, MAX_HASHES) as usize) << 3);
  for (; list < end; list += 8) {
    const hash = mix(load<u64>(list));
    if (counts != 0) touched += touch(counts, 0, hash);
    if (names != 0) touched += touch(names, HALF_WIDE, hash);
  }
}
