/**
 * CacheNamespaces: under which salt each block of a rank was stored, so that children inherit it.
 *
 * Store    with a salt: its blocks are under it. Without: under the parent's, or, where the parent was
 *          stored under two salts, not to be relayed. A block stored under two is ambiguous.
 * Remove   forgets a block that is not ambiguous. Clear forgets the rank.
 * strict   keeps no tiers apart: a host-tier remove forgets a device block, and an ambiguous block stays
 *          ambiguous until its rank is cleared, as in the real publisher.
 * safe     keeps them apart, and forgets an ambiguous block with its last copy, where it has not been
 *          stored again by then.
 * Owns     a kernel table a rank (and tier), made with its first salt. A salt is kept as its digest: all it does is
 *          change the seed of the tokens hash.
 * Source   ai-dynamo/dynamo 1.6.1, cache-namespace rules of the KV publisher.
 */
import { namespaceDigest } from '../hashing/tokens-hash.ts';
import { RankTables } from '../kernel/rank-tables.ts';
import { NamespaceTable } from '../kernel/tables.ts';
import type { U64List } from '../kernel/u64-list.ts';
import type { U64Words } from '../kernel/xxh3.ts';
import { type Compat, diverges } from '../protocol/compat.ts';
import type { RawEvent } from '../protocol/native-batch.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';

export class CacheNamespaces {
  readonly #compat: Compat;
  readonly #tables = new RankTables<StorageTier, NamespaceTable>(() => new NamespaceTable());

  constructor(compat: Compat) {
    this.#compat = compat;
  }

  /** Digest of the namespace a store is under, null for none, `ambiguous` where it cannot be told. */
  resolve(
    dpRank: number,
    tier: StorageTier,
    event: RawEvent,
    salt: string | null,
  ): U64Words | null | 'ambiguous' {
    if (salt !== null) return namespaceDigest(salt);
    const table = this.#table(dpRank, tier);
    if (table === undefined || !event.hasParent) return null;
    const state = table.stateOf(event.parentLow, event.parentHigh);
    if (state === 'ambiguous') return 'ambiguous';
    return state === 'none' ? null : { low: table.foundLow, high: table.foundHigh };
  }

  /** Notes an accepted store; blocks that are cut off later are noted too. */
  noteStored(
    dpRank: number,
    tier: StorageTier,
    blockHashes: U64List,
    namespace: U64Words | null,
    rawEventId: number,
  ): void {
    if (namespace === null) {
      this.#table(dpRank, tier)?.markUnsalted(blockHashes, rawEventId);
      return;
    }
    const { low, high } = namespace;
    this.#tables.getOrMake(dpRank, this.#key(tier))?.mark(blockHashes, low, high, rawEventId);
  }

  noteRemoved(dpRank: number, tier: StorageTier, blockHashes: U64List): void {
    this.#table(dpRank, tier)?.forget(blockHashes);
  }

  /**
   * `safe`: the remove took the last copy of these blocks, so nothing about them is ambiguous any more.
   * It is told of once it has been counted, when later events may already have been noted here: a block
   * stored since keeps what is known of it.
   */
  noteLastCopyGone(removed: PlacementEvent): void {
    if (!diverges(this.#compat, 'ambiguous-forgotten')) return;
    const { dpRank, storageTier, blockHashes, rawEventId } = removed;
    this.#table(dpRank, storageTier)?.forgetAmbiguous(blockHashes, rawEventId);
  }

  forgetRank(dpRank: number): void {
    this.#tables.forgetRank(dpRank);
  }

  free(): void {
    for (const dpRank of this.#tables.dpRanks) this.forgetRank(dpRank);
  }

  #key(tier: StorageTier): StorageTier {
    return diverges(this.#compat, 'tier-namespaces') ? tier : 'device';
  }

  #table(dpRank: number, tier: StorageTier): NamespaceTable | undefined {
    // Of most engines no event ever names a salt.
    return this.#tables.isEmpty ? undefined : this.#tables.get(dpRank, this.#key(tier));
  }
}
