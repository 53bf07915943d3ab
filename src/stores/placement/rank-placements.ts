/**
 * RankPlacements: blocks of one rank that a store holds, as events of the storage tier that stands for it.
 *
 * In       what the engine's stream shows (observe), hashes that the store came to hold or no longer holds.
 * Out      a stored event for each block that is both, a removed one when it is held no longer: in batches,
 *          at the end of the turn, of very many over several turns. One block an event; the coalescer joins chains.
 * Cleared  routers forget all tiers of the rank, so what is held is published again, in the order shown.
 * Memory   a batch's lists live in the kernel until the next message of anybody is read.
 */
import { Subject } from 'rxjs';
import { arena } from '../../kernel/arena.ts';
import { U64List } from '../../kernel/u64-list.ts';
import { type PlacementBatch, PlacementEvent } from '../../protocol/placement-event.ts';
import type { StorageTier } from '../../protocol/storage-tier.ts';
import { KnownBlocks } from './known-blocks.ts';

const MAX_BATCH_BLOCKS = 1024;
/** Hashes of one turn, or this part of those that wait: so the wait cannot grow for ever. */
const MIN_TURN_HASHES = 2048;
const TURN_PARTS = 64;

export interface RankPlacementsOptions {
  readonly dpRank: number;
  readonly storageTier: StorageTier;
  readonly maxBlocks: number;
  /** Whether the store holds an object of the block. */
  readonly isHeld: (low: number, high: number) => boolean;
  readonly nowMs: () => number;
  /** Calls back at the end of this turn. */
  readonly defer: (callback: () => void) => void;
}

export class RankPlacements {
  readonly known: KnownBlocks;
  readonly placements$: Subject<PlacementBatch> = new Subject();
  readonly #options: RankPlacementsOptions;
  /** Hashes whose placement may have to change, low and high words by turns. */
  #touched: number[] = [];
  /** Where those begin that have not been looked at. */
  #touchedAt = 0;
  #isDeferred = false;

  constructor(options: RankPlacementsOptions) {
    this.#options = options;
    this.known = new KnownBlocks(options.maxBlocks);
  }

  /** Hashes that are looked at in a later turn. */
  get waitingHashes(): number {
    return (this.#touched.length - this.#touchedAt) / 2;
  }

  /** Looks at the engine's events; changes nothing in them. */
  observe(batch: PlacementBatch): void {
    for (const event of batch) {
      if (event.type === 'cleared') this.#takeClear();
      else if (event.type === 'stored' && event.tokensHashes !== null) this.#takeStore(event);
    }
  }

  /** The store holds the block from here on, or holds it no longer. */
  touch(low: number, high: number): void {
    this.#touched.push(low, high);
    this.#defer();
  }

  stop(): void {
    this.#touched = [];
    this.#touchedAt = 0;
    this.placements$.complete();
  }

  #defer(): void {
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    this.#options.defer(() => {
      this.#isDeferred = false;
      this.#flush();
    });
  }

  #flush(): void {
    const hashes = Math.max(MIN_TURN_HASHES, Math.ceil(this.waitingHashes / TURN_PARTS));
    const end = Math.min(this.#touched.length, this.#touchedAt + 2 * hashes);
    while (this.#touchedAt < end) {
      arena.reset();
      const batch = this.#settleUntil(end);
      if (batch.length > 0) this.placements$.next(batch);
    }
    if (this.#touchedAt * 2 >= this.#touched.length) {
      this.#touched = this.#touched.slice(this.#touchedAt);
      this.#touchedAt = 0;
    }
    if (this.#touched.length > 0) this.#defer();
  }

  #settleUntil(end: number): PlacementBatch {
    const batch: PlacementBatch = [];
    while (this.#touchedAt < end && batch.length < MAX_BATCH_BLOCKS) {
      const low = this.#touched[this.#touchedAt++] as number;
      const event = this.#settle(low, this.#touched[this.#touchedAt++] as number);
      if (event !== null) batch.push(event);
    }
    return batch;
  }

  #takeClear(): void {
    this.known.unplaceAll((low, high) => this.touch(low, high));
  }

  /** Blocks with images are left out: a key says nothing of what else their events would carry. */
  #takeStore(event: PlacementEvent): void {
    const { blockHashes, tokensHashes, mmInfos } = event;
    if (tokensHashes === null) return;
    for (let index = 0; index < blockHashes.length; index++) {
      if (mmInfos !== null && mmInfos[index] !== null) continue;
      const isFirst = index === 0;
      const hashLow = blockHashes.lowAt(index);
      const hashHigh = blockHashes.highAt(index);
      const isNews = this.known.show({
        hashLow,
        hashHigh,
        tokensLow: tokensHashes.lowAt(index),
        tokensHigh: tokensHashes.highAt(index),
        hasParent: isFirst ? event.hasParent : true,
        parentLow: isFirst ? event.parentLow : blockHashes.lowAt(index - 1),
        parentHigh: isFirst ? event.parentHigh : blockHashes.highAt(index - 1),
      });
      if (isNews && this.#options.isHeld(hashLow, hashHigh)) this.touch(hashLow, hashHigh);
    }
  }

  /** The event that makes the placement what it should be; null where it is that already. */
  #settle(low: number, high: number): PlacementEvent | null {
    const { known } = this;
    const entry = known.find(low, high);
    if (entry < 0) return null;
    const isWanted = known.canBePlaced(entry) && this.#options.isHeld(low, high);
    if (isWanted === known.isPlaced(entry)) return null;
    known.setPlaced(entry, isWanted);
    const block = known.block(entry);
    const { dpRank, storageTier, nowMs } = this.#options;
    const hashes = listOf(block.hashLow, block.hashHigh);
    if (!isWanted) return new PlacementEvent('removed', dpRank, storageTier, hashes, null, nowMs());
    const tokens = listOf(block.tokensLow, block.tokensHigh);
    const event = new PlacementEvent('stored', dpRank, storageTier, hashes, tokens, nowMs());
    event.hasParent = block.hasParent;
    event.parentLow = block.parentLow;
    event.parentHigh = block.parentHigh;
    return event;
  }
}

function listOf(low: number, high: number): U64List {
  const list = new U64List(1);
  list.push(low, high);
  return list;
}
