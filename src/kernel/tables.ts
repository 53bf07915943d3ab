/**
 * Tables keyed by u64 in kernel memory, each call over a whole list.
 *
 * Owns     kernel memory until `free()`.
 * Size     16 bytes a slot (32 in NamespaceTable), filled to between 5/16 and 5/8: 26 to 51 bytes an
 *          entry, 51 to 102 in NamespaceTable; an empty table takes 2,048 bytes.
 */
import { KernelMemoryError, resultAddress, views, wasm } from './kernel.ts';
import { lookAhead, type NamedBlocks } from './look-ahead.ts';
import type { U64List } from './u64-list.ts';

function newTable(wide: boolean): number {
  const table = wasm.newTable(wide ? 1 : 0) >>> 0;
  views.refresh();
  if (table === 0) throw new KernelMemoryError('No room for a table in kernel memory');
  return table;
}

class KeyTable {
  protected readonly table: number;

  constructor(wide: boolean) {
    this.table = newTable(wide);
  }

  /** Number of keys. */
  get size(): number {
    return views.u32[this.table >>> 2] as number;
  }

  has(low: number, high: number): boolean {
    return wasm.tagOf(this.table, low, high) !== 0;
  }

  clear(): void {
    wasm.clearTable(this.table);
  }

  /** Ends the table's life; nothing may be called after it. */
  free(): void {
    wasm.freeTable(this.table);
  }
}

/** Counts how often each hash is held. */
export class RefcountTable extends KeyTable {
  constructor() {
    super(false);
  }

  /** Adds 1 for each hash, for at most `maxEntries` keys; returns how many were refused. */
  countStored(hashes: U64List, maxEntries: number): number {
    const refused = wasm.countStored(this.table, hashes.address, hashes.length, maxEntries);
    views.refresh();
    return refused;
  }

  /** Reads where the first block of each event is counted. */
  lookAhead(events: readonly NamedBlocks[]): void {
    lookAhead(this.table, events);
  }

  /** Takes 1 for each hash and keeps in the list those that reach 0 or were never counted. */
  releaseRemoved(hashes: U64List): void {
    hashes.length = wasm.releaseRemoved(this.table, hashes.address, hashes.length);
  }
}

export type NamespaceState = 'none' | 'namespaced' | 'ambiguous';
const NAMESPACE_STATES = ['none', 'namespaced', 'ambiguous'] as const;

/** Remembers under which namespace (its u64 digest) a hash was stored. */
export class NamespaceTable extends KeyTable {
  /** Low and high word of the namespace that the last `stateOf` found. */
  foundLow = 0;
  foundHigh = 0;

  constructor() {
    super(true);
  }

  stateOf(low: number, high: number): NamespaceState {
    const tag = wasm.namespaceOf(this.table, low, high, resultAddress);
    if (tag === 1) {
      this.foundLow = views.u32[resultAddress >>> 2] as number;
      this.foundHigh = views.u32[(resultAddress >>> 2) + 1] as number;
    }
    return NAMESPACE_STATES[tag] as NamespaceState;
  }

  /** Marks each hash; one that is under another namespace becomes ambiguous. */
  mark(hashes: U64List, namespaceLow: number, namespaceHigh: number, eventId: number): void {
    const { address, length } = hashes;
    const stamp = stampOf(eventId);
    wasm.markNamespace(this.table, address, length, namespaceLow, namespaceHigh, stamp);
    views.refresh();
  }

  /** What is marked becomes ambiguous; unsalted hashes are not remembered. */
  markUnsalted(hashes: U64List, eventId: number): void {
    wasm.markUnsalted(this.table, hashes.address, hashes.length, stampOf(eventId));
  }

  /** Forgets each hash that is not ambiguous. */
  forget(hashes: U64List): void {
    wasm.forgetNamespace(this.table, hashes.address, hashes.length);
  }

  /** Forgets each ambiguous hash that no event since `eventId` has stored. */
  forgetAmbiguous(hashes: U64List, eventId: number): void {
    wasm.forgetAmbiguous(this.table, hashes.address, hashes.length, stampOf(eventId));
  }
}

/** Event ids wrap at 2^30; an entry that many events old is taken for a new one and kept. */
function stampOf(eventId: number): number {
  return eventId % 2 ** 30;
}
