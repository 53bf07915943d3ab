/**
 * Look-ahead: the keys of a batch of events, which a table reads at once before the events come one by one. A
 * look-up waits for memory, and so would each of them; reads that stand next to each other wait together.
 *
 * Changes  nothing that is held, so which events are among them says nothing but how fast the others are.
 * Owns     a list in kernel memory, for one call at a time.
 * Bounds   MAX_KEYS of a batch: what is read has to stay in the cache until its event comes.
 */
import { allocateBlock, views, wasm } from './kernel.ts';
import type { U64List } from './u64-list.ts';

const MAX_KEYS = 1024;

/** Where the keys lie; the kernel may write over them. */
export const keysAddress: number = allocateBlock(MAX_KEYS * 8).address;

const LOOKED_AHEAD_FROM = wasm.LOOKED_AHEAD_FROM.value;

/** Whether the tables of all ranks together have outgrown the caches near the core. */
export function looksAhead(): boolean {
  return views.u8.length >= LOOKED_AHEAD_FROM;
}

/** What an event names. */
export interface NamedBlocks {
  readonly blockHashes: U64List;
  readonly hasParent: boolean;
  readonly parentLow: number;
  readonly parentHigh: number;
}

/** Lists the first block of each event, and the block it follows on where `withParents`; returns how many. */
export function listKeys(events: readonly NamedBlocks[], withParents: boolean): number {
  const first = keysAddress >>> 2;
  const end = first + MAX_KEYS * 2;
  const { i32 } = views;
  let word = first;
  for (const { blockHashes, hasParent, parentLow, parentHigh } of events) {
    if (word + 4 > end) break;
    if (withParents && hasParent) {
      i32[word++] = parentLow;
      i32[word++] = parentHigh;
    }
    if (blockHashes.length === 0) continue;
    i32[word++] = blockHashes.lowAt(0);
    i32[word++] = blockHashes.highAt(0);
  }
  return (word - first) / 2;
}

/** Reads where a narrow table has the first block of each event. */
export function lookAhead(table: number, events: readonly NamedBlocks[]): void {
  if (looksAhead()) wasm.lookAhead(table, keysAddress, listKeys(events, false));
}
