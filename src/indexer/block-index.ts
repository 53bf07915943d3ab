/**
 * BlockIndex: the blocks that a router holds after the router events so far, its odd rules included.
 *
 * Device   a prefix tree: a store without a known parent is left out, a remove takes all below with it.
 * Lower    edges (parent hash, tokens hash) → block hash; each block stands for itself.
 * Clear    empties all tiers of its rank.
 * Owns     a kernel tier per (dp rank, storage tier), made with its first store.
 * Bounds   maxBlocks over all tiers, and those of RankTables; further blocks are not held, and counted.
 * Source   test/vectors/dynamo/router-index.jsonl
 */
import { RankTables } from '../kernel/rank-tables.ts';
import { DeviceTree, EdgeTier, type RouterTier } from '../kernel/router-tiers.ts';
import type { U64List } from '../kernel/u64-list.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import { STORAGE_TIERS, type StorageTier } from '../protocol/storage-tier.ts';

/** One tier of one rank. */
export interface TierOfRank {
  readonly dpRank: number;
  readonly storageTier: StorageTier;
  readonly tier: RouterTier;
}

/** Blocks of a prefix that one rank has, by the tier they are on. */
export interface RankMatch {
  readonly dpRank: number;
  readonly blocks: Record<StorageTier, number>;
}

export class BlockIndex {
  readonly #maxBlocks: number;
  #size = 0;
  readonly #metrics: RelayMetrics;
  readonly #tiers = new RankTables<StorageTier, RouterTier>((storageTier) =>
    storageTier === 'device' ? new DeviceTree() : new EdgeTier(),
  );

  constructor(maxBlocks: number, metrics: RelayMetrics) {
    this.#maxBlocks = maxBlocks;
    this.#metrics = metrics;
  }

  /** Before the events of a batch are applied; those of the first one's rank and tier are faster for it. */
  lookAhead(batch: readonly PlacementEvent[]): void {
    const first = batch[0];
    if (first !== undefined) this.#tiers.get(first.dpRank, first.storageTier)?.lookAhead(batch);
  }

  apply(event: PlacementEvent): void {
    if (event.type === 'cleared') this.#clearRank(event.dpRank);
    else if (event.type === 'stored') this.#store(event);
    else this.#remove(event);
  }

  /** Blocks held, over all ranks and tiers. */
  get size(): number {
    return this.#size;
  }

  /** Ranks that hold or held a block, lowest first. */
  get dpRanks(): number[] {
    return [...this.#tiers.dpRanks].sort((a, b) => a - b);
  }

  /** All tiers, the device tier of all ranks first. */
  get tiers(): TierOfRank[] {
    return STORAGE_TIERS.flatMap((storageTier) =>
      this.dpRanks.flatMap((dpRank) => {
        const tier = this.#tiers.get(dpRank, storageTier);
        return tier === undefined ? [] : [{ dpRank, storageTier, tier }];
      }),
    );
  }

  /** How much of a prompt each rank has: from its start on the device tier, and on from there below. */
  match(tokensHashes: U64List): RankMatch[] {
    return this.dpRanks.map((dpRank) => {
      const blocks = { device: 0, host_pinned: 0, disk: 0, external: 0 };
      const cursor = { isRoot: true, low: 0, high: 0 };
      let start = 0;
      for (const storageTier of STORAGE_TIERS) {
        const tier = this.#tiers.get(dpRank, storageTier);
        if (tier === undefined || start === tokensHashes.length) continue;
        blocks[storageTier] = tier.match(tokensHashes, start, cursor);
        start += blocks[storageTier];
      }
      return { dpRank, blocks };
    });
  }

  free(): void {
    for (const dpRank of this.dpRanks) {
      this.#tiers.forgetRank(dpRank, ({ size }, tier) => this.#note(tier, -size));
    }
  }

  #store(event: PlacementEvent): void {
    const { dpRank, storageTier, blockHashes, tokensHashes } = event;
    if (blockHashes.length === 0 || tokensHashes === null) return;
    const tier = this.#tiers.getOrMake(dpRank, storageTier);
    if (tier === undefined) {
      this.#metrics.unindexedBlocks += blockHashes.length;
      return;
    }
    const before = tier.size;
    const free = Math.max(this.#maxBlocks - this.#size, 0);
    const refused = tier.store(event, tokensHashes, before + free);
    if (refused > 0) this.#metrics.unindexedBlocks += refused;
    this.#note(storageTier, tier.size - before);
  }

  #remove({ dpRank, storageTier, blockHashes }: PlacementEvent): void {
    const tier = this.#tiers.get(dpRank, storageTier);
    if (tier === undefined) return;
    const before = tier.size;
    tier.remove(blockHashes);
    this.#note(storageTier, tier.size - before);
  }

  #note(storageTier: StorageTier, moreBlocks: number): void {
    if (moreBlocks === 0) return;
    this.#size += moreBlocks;
    this.#metrics.liveBlocks[storageTier] += moreBlocks;
  }

  #clearRank(dpRank: number): void {
    for (const [storageTier, tier] of this.#tiers.tablesOf(dpRank) ?? []) {
      this.#note(storageTier, -tier.size);
      tier.clear();
    }
  }
}
