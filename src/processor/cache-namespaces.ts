/**
 * CacheNamespaces: under which salt each block of a rank was stored, so that children inherit it.
 *
 * Store    with a salt: its blocks are under it. Without: under the parent's, or, where the parent was
 *          stored under two salts, not to be relayed. A block stored under two is ambiguous.
 * Remove   forgets a block that is not ambiguous. Clear forgets the rank.
 * Tier     plays no part: a host-tier remove forgets a device block, as the real publisher does.
 * Owns     a kernel table a rank, made with its first salt. A salt is kept as its digest: all it does is
 *          change the seed of the tokens hash.
 * Source   ai-dynamo/dynamo 1.6.1, cache-namespace rules of the KV publisher.
 */
import { namespaceDigest } from '../hashing/tokens-hash.ts';
import { NamespaceTable } from '../kernel/tables.ts';
import type { U64List } from '../kernel/u64-list.ts';
import type { U64Words } from '../kernel/xxh3.ts';
import type { RawEvent } from '../protocol/native-batch.ts';

/** Ranks with salts of their own; a stream that names more is no worker. */
const MAX_RANKS = 1024;

export class CacheNamespaces {
  readonly #tables = new Map<number, NamespaceTable>();

  /** Digest of the namespace a store is under, null for none, `ambiguous` where it cannot be told. */
  resolve(dpRank: number, event: RawEvent, salt: string | null): U64Words | null | 'ambiguous' {
    if (salt !== null) return namespaceDigest(salt);
    const table = this.#tables.get(dpRank);
    if (table === undefined || !event.hasParent) return null;
    const state = table.stateOf(event.parentLow, event.parentHigh);
    if (state === 'ambiguous') return 'ambiguous';
    return state === 'none' ? null : { low: table.foundLow, high: table.foundHigh };
  }

  /** Notes an accepted store; blocks that are cut off later are noted too. */
  noteStored(dpRank: number, blockHashes: U64List, namespace: U64Words | null): void {
    let table = this.#tables.get(dpRank);
    if (namespace === null) {
      table?.markUnsalted(blockHashes);
      return;
    }
    if (table === undefined) {
      if (this.#tables.size >= MAX_RANKS) return;
      table = new NamespaceTable();
      this.#tables.set(dpRank, table);
    }
    table.mark(blockHashes, namespace.low, namespace.high);
  }

  noteRemoved(dpRank: number, blockHashes: U64List): void {
    this.#tables.get(dpRank)?.forget(blockHashes);
  }

  forgetRank(dpRank: number): void {
    this.#tables.get(dpRank)?.free();
    this.#tables.delete(dpRank);
  }

  free(): void {
    for (const table of this.#tables.values()) table.free();
    this.#tables.clear();
  }
}
