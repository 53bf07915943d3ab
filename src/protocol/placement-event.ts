/**
 * Placement event: blocks that appeared on, or left, one storage tier of one rank. What the stages
 * between the converter and the encoder work on.
 */
import type { U64List } from '../kernel/u64-list.ts';
import type { MmInfo } from './multimodal.ts';
import type { StorageTier } from './storage-tier.ts';

export type PlacementEventType = 'stored' | 'removed' | 'cleared';

export class PlacementEvent {
  readonly type: PlacementEventType;
  readonly dpRank: number;
  readonly storageTier: StorageTier;
  /** Engine block hashes, one a block; empty for `cleared`. */
  readonly blockHashes: U64List;
  /** Router hashes, one a block of a store; null for the others. */
  readonly tokensHashes: U64List | null;
  /** Arrival of the engine message that began this event, ms on the monotonic clock. */
  readonly arrivedAtMs: number;
  /** Hash of the block before the first one; a store without is a root. */
  hasParent = false;
  /** Words of the parent's hash, signed. */
  parentLow = 0;
  parentHigh = 0;
  /** Image data, one entry a block; null where no block has any. */
  mmInfos: (MmInfo | null)[] | null = null;
  /** Session of the request behind a store; null where the engine names none. */
  sessionId: string | null = null;
  /** Counts accepted events of a relay, from 0. */
  rawEventId = 0;

  constructor(
    type: PlacementEventType,
    dpRank: number,
    storageTier: StorageTier,
    blockHashes: U64List,
    tokensHashes: U64List | null,
    arrivedAtMs: number,
  ) {
    this.type = type;
    this.dpRank = dpRank;
    this.storageTier = storageTier;
    this.blockHashes = blockHashes;
    this.tokensHashes = tokensHashes;
    this.arrivedAtMs = arrivedAtMs;
  }

  /** Blocks stored or removed, before reference counts are looked at. */
  get blockCount(): number {
    return this.blockHashes.length;
  }

  /** A root store of 2 blocks or more: the form in which an engine reports what it already holds. */
  get mayBeFullReport(): boolean {
    return this.type === 'stored' && !this.hasParent && this.blockCount >= 2;
  }
}

/** Events of one engine message, or of one flush, in order. */
export type PlacementBatch = PlacementEvent[];
