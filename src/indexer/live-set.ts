/**
 * LiveSet: the blocks that a consumer holds after the router events so far.
 *
 * A store adds its blocks to its rank and tier, a remove takes its hashes away, a clear empties all
 * tiers of its rank.
 * Owns    a kernel table per (dp rank, storage tier), made with its first store.
 * Bounds  maxBlocks over all tables, MAX_RANKS ranks; further blocks are not held, and counted.
 */
import { U64Set } from '../kernel/tables.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import { STORAGE_TIERS, type StorageTier } from '../protocol/storage-tier.ts';

/** Ranks of one stream; one that names more is no worker's. */
const MAX_RANKS = 1024;

type TierSets = Partial<Record<StorageTier, U64Set>>;

export class LiveSet {
  readonly #maxBlocks: number;
  readonly #metrics: RelayMetrics;
  readonly #ranks = new Map<number, TierSets>();

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
    return [...this.#ranks.keys()].sort((a, b) => a - b);
  }

  /** The block hashes of one rank and tier, in no order. */
  blockHashes(dpRank: number, storageTier: StorageTier): bigint[] {
    return this.#ranks.get(dpRank)?.[storageTier]?.keys().toBigInts() ?? [];
  }

  free(): void {
    for (const dpRank of this.dpRanks) this.#forgetRank(dpRank);
  }

  #store({ dpRank, storageTier, blockHashes }: PlacementEvent): void {
    const { device, host_pinned, disk, external } = this.#metrics.liveBlocks;
    const free = this.#maxBlocks - (device + host_pinned + disk + external);
    if (blockHashes.length === 0) return;
    let sets = this.#ranks.get(dpRank);
    if (sets === undefined) {
      if (this.#ranks.size >= MAX_RANKS) {
        this.#metrics.unindexedBlocks += blockHashes.length;
        return;
      }
      sets = {};
      this.#ranks.set(dpRank, sets);
    }
    sets[storageTier] ??= new U64Set();
    const set = sets[storageTier];
    const before = set.size;
    this.#metrics.unindexedBlocks += set.addAll(blockHashes, before + Math.max(free, 0));
    this.#metrics.liveBlocks[storageTier] += set.size - before;
  }

  #remove({ dpRank, storageTier, blockHashes }: PlacementEvent): void {
    const set = this.#ranks.get(dpRank)?.[storageTier];
    if (set === undefined) return;
    const before = set.size;
    set.deleteAll(blockHashes);
    this.#metrics.liveBlocks[storageTier] += set.size - before;
  }

  #forgetRank(dpRank: number): void {
    const sets = this.#ranks.get(dpRank);
    if (sets === undefined) return;
    for (const tier of STORAGE_TIERS) {
      this.#metrics.liveBlocks[tier] -= sets[tier]?.size ?? 0;
      sets[tier]?.free();
    }
    this.#ranks.delete(dpRank);
  }
}
