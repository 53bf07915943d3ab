// Namespaces of u64 keys: a wide table of what each was stored under. Each call takes a whole list.
//
// tag    state in the low two bits, above them the stamp of its last store (a count of events, modulo 2^30)
// value  the namespace

import { claim, find, insert, removeFound, WIDE, atTag, atValue } from './table';

const NAMESPACED: u32 = 1;
const AMBIGUOUS: u32 = 2;
const STATE_MASK: u32 = 3;
const HALF_RANGE: u32 = 1 << 31;

/** State of the namespace entry of `key`; the namespace itself, where there is one, goes to `out`. */
export function namespaceOf(table: usize, key: u64, out: usize): u32 {
  const state = find(table, WIDE, key) & STATE_MASK;
  if (state == NAMESPACED) store<u64>(out, load<u64>(atValue));
  return state;
}

/** Marks each hash of a list with namespace `value`; one that has another becomes ambiguous. */
export function markNamespace(
  table: usize,
  list: usize,
  count: usize,
  value: u64,
  stamp: u32,
): void {
  const end = list + (count << 3);
  for (; list < end; list += 8) {
    const key = load<u64>(list);
    if (!claim(table, WIDE, key)) continue;
    const tag = load<u32>(atTag);
    if (tag == 0) {
      store<u64>(atValue, value);
      insert(table, key, NAMESPACED | (stamp << 2));
    } else {
      const state = load<u64>(atValue) != value ? AMBIGUOUS : tag & STATE_MASK;
      store<u32>(atTag, state | (stamp << 2));
    }
  }
}

/** An unsalted store: what is already marked becomes ambiguous, the rest is not remembered. */
export function markUnsalted(table: usize, list: usize, count: usize, stamp: u32): void {
  const end = list + (count << 3);
  for (; list < end; list += 8) {
    if (find(table, WIDE, load<u64>(list)) != 0) store<u32>(atTag, AMBIGUOUS | (stamp << 2));
  }
}

/** A remove: forgets each hash of a list that is not ambiguous. */
export function forgetNamespace(table: usize, list: usize, count: usize): void {
  const end = list + (count << 3);
  for (; list < end; list += 8) {
    if ((find(table, WIDE, load<u64>(list)) & STATE_MASK) == NAMESPACED) removeFound(table);
  }
}

/** Forgets each ambiguous hash of a list whose last store came before `stamp`. */
export function forgetAmbiguous(table: usize, list: usize, count: usize, stamp: u32): void {
  const end = list + (count << 3);
  for (; list < end; list += 8) {
    const tag = find(table, WIDE, load<u64>(list));
    if ((tag & STATE_MASK) != AMBIGUOUS) continue;
    // Both stamps stand in the upper 30 bits, so the difference wraps where they do.
    const age = (stamp << 2) - (tag & ~STATE_MASK);
    if (age != 0 && age < HALF_RANGE) removeFound(table);
  }
}
