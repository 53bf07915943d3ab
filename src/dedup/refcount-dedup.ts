/**
 * RefcountDedup: lets a remove through only when the last copy of a block goes.
 *
 * In/out   stores pass unchanged and count each of their blocks; a remove keeps, in order, the hashes
 *          whose count reaches 0 and those never counted, and vanishes where none is left; a clear
 *          forgets all tiers of its rank.
 * Owns     a kernel table per (dp rank, storage tier), made with its first store. Never throws.
 * Bounds   maxTrackedBlocks over all tables, and those of RankTables: further hashes are not counted, so
 *          their removes pass.
 * Source   ai-dynamo/dynamo 1.6.1, dedup.rs.
 */
import { RankTables } from '../kernel/rank-tables.ts';
import { RefcountTable } from '../kernel/tables.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';
import type { Stage } from '../stage.ts';

export interface RefcountDedupOptions {
  readonly maxTrackedBlocks: number;
  /** A root store of 2 blocks or more that are all held is a report of them, not another copy. */
  readonly fullReports?: boolean;
  /** Told of each remove that passes: no counted copy of its blocks is left. */
  readonly onLastCopyGone?: (removed: PlacementEvent) => void;
}

export class RefcountDedup implements Stage<PlacementEvent, PlacementEvent> {
  readonly #options: RefcountDedupOptions;
  readonly #metrics: RelayMetrics;
  /** Over all tables. */
  #trackedBlocks = 0;
  readonly #tables = new RankTables<StorageTier, RefcountTable>(() => new RefcountTable());

  constructor(options: RefcountDedupOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
  }

  /** Nearly all batches are of one rank and tier; where not, the rest is looked up in vain. */
  lookAhead(batch: readonly PlacementEvent[]): void {
    const first = batch[0];
    if (first !== undefined) this.#tables.get(first.dpRank, first.storageTier)?.lookAhead(batch);
  }

  push(event: PlacementEvent, out: PlacementEvent[]): void {
    if (event.type === 'stored') this.#count(event);
    else if (event.type === 'cleared') this.#forgetRank(event.dpRank);
    else if (!this.#release(event)) return;
    out.push(event);
  }

  /** Nothing is held back: the counts end with the stage. */
  flush(): void {
    for (const dpRank of this.#tables.dpRanks) this.#forgetRank(dpRank);
  }

  #count(event: PlacementEvent): void {
    const { dpRank, storageTier, blockHashes } = event;
    if (blockHashes.length === 0) return;
    const table = this.#tables.getOrMake(dpRank, storageTier);
    if (table === undefined) {
      this.#metrics.untrackedBlocks += blockHashes.length;
      return;
    }
    if (this.#options.fullReports === true && isFullReport(event, table)) return;
    const before = table.size;
    const free = Math.max(this.#options.maxTrackedBlocks - this.#trackedBlocks, 0);
    const refused = table.countStored(blockHashes, before + free);
    if (refused > 0) this.#metrics.untrackedBlocks += refused;
    this.#note(storageTier, table.size - before);
  }

  /** Takes the removed blocks from the counts; false where no removal is left to tell of. */
  #release(event: PlacementEvent): boolean {
    const { dpRank, storageTier, blockHashes } = event;
    const table = this.#tables.get(dpRank, storageTier);
    const named = blockHashes.length;
    if (table !== undefined) {
      const before = table.size;
      table.releaseRemoved(blockHashes);
      this.#note(storageTier, table.size - before);
    }
    const kept = blockHashes.length;
    if (kept < named) this.#metrics.suppressedRemoves += named - kept;
    if (kept === 0) return false;
    this.#options.onLastCopyGone?.(event);
    return true;
  }

  #forgetRank(dpRank: number): void {
    this.#tables.forgetRank(dpRank, ({ size }, tier) => this.#note(tier, -size));
  }

  #note(storageTier: StorageTier, moreBlocks: number): void {
    if (moreBlocks === 0) return;
    this.#trackedBlocks += moreBlocks;
    this.#metrics.trackedBlocks[storageTier] += moreBlocks;
  }
}

function isFullReport(
  { mayBeFullReport, blockHashes }: PlacementEvent,
  table: RefcountTable,
): boolean {
  if (!mayBeFullReport) return false;
  for (let index = 0; index < blockHashes.length; index++) {
    if (!table.has(blockHashes.lowAt(index), blockHashes.highAt(index))) return false;
  }
  return true;
}
