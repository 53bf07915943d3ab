/**
 * LiveSet: the blocks that a consumer holds after the router events so far.
 *
 * A store adds its blocks to its rank and tier, a remove takes its hashes away, a clear empties all
 * tiers of its rank.
 * Owns    a kernel table per (dp rank, storage tier), made with its first store.
 * Bounds  maxBlocks over all tables, and those of RankTables; further blocks are not held, and counted.
 */
import { RankTables } from '../kernel/rank-tables.ts';
import { U64Set } from '../kernel/tables.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';

export class LiveSet {
  readonly #maxBlocks: number;
  readonly #metrics: RelayMetrics;
  readonly #sets = new RankTables<StorageTier, U64Set>(() => new U64Set());

  constructor(maxBlocks: number, metrics: RelayMetrics) {
    this.#maxBlocks = maxBlocks;
    this.#metrics = metrics;
  }

  apply(event: PlacementEvent): void {
    if (event.type === 'cleared') this.#forgetRank(event.dpRank);
    else if (event.type === 'stored') this.#store(event);
    else this.#remove(event);
  }

  /** Ranks that hold or held a block since their last clear. */
  get dpRanks(): number[] {
    return [...this.#sets.dpRanks].sort((a, b) => a - b);
  }

  /** The block hashes of one rank and tier, in no order. */
  blockHashes(dpRank: number, storageTier: StorageTier): bigint[] {
    return this.#sets.get(dpRank, storageTier)?.keys().toBigInts() ?? [];
  }

  free(): void {
    for (const dpRank of this.dpRanks) this.#forgetRank(dpRank);
  }

  #store({ dpRank, storageTier, blockHashes }: PlacementEvent): void {
    const { device, host_pinned, disk, external } = this.#metrics.liveBlocks;
    const free = this.#maxBlocks - (device + host_pinned + disk + external);
    if (blockHashes.length === 0) return;
    const set = this.#sets.getOrMake(dpRank, storageTier);
    if (set === undefined) {
      this.#metrics.unindexedBlocks += blockHashes.length;
      return;
    }
    const before = set.size;
    this.#metrics.unindexedBlocks += set.addAll(blockHashes, before + Math.max(free, 0));
    this.#metrics.liveBlocks[storageTier] += set.size - before;
  }

  #remove({ dpRank, storageTier, blockHashes }: PlacementEvent): void {
    const set = this.#sets.get(dpRank, storageTier);
    if (set === undefined) return;
    const before = set.size;
    set.deleteAll(blockHashes);
    this.#metrics.liveBlocks[storageTier] += set.size - before;
  }

  #forgetRank(dpRank: number): void {
    this.#sets.forgetRank(dpRank, ({ size }, tier) => {
      this.#metrics.liveBlocks[tier] -= size;
    });
  }
}
