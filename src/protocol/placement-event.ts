/**
 * Placement event: blocks that appeared on, or left, one storage tier of one rank. What the stages
 * between the converter and the encoder work on.
 */
import { ArenaPool } from '../kernel/arena-pool.ts';
import { U64List } from '../kernel/u64-list.ts';
import type { MmInfo } from './multimodal.ts';
import type { StorageTier } from './storage-tier.ts';

export type PlacementEventType = 'stored' | 'removed' | 'cleared';

export class PlacementEvent {
  type: PlacementEventType;
  dpRank: number;
  storageTier: StorageTier;
  /** Engine block hashes, one a block; empty for `cleared`. */
  blockHashes: U64List;
  /** Router hashes, one a block of a store; null for the others. */
  tokensHashes: U64List | null;
  /** Arrival of the engine message that began this event, ms on the monotonic clock. */
  arrivedAtMs: number;
  /** Hash of the block before the first one; a store without is a root. */
  hasParent = false;
  /** Words of the parent's hash, signed. */
  parentLow = 0;
  parentHigh = 0;
  /** Image data, one entry a block; null where no block has any. */
  mmInfos: (MmInfo | null)[] | null = null;
  /** Session of the request behind a store; null where the engine names none. */
  sessionId: string | null = null;
  /** Counts accepted events of a relay, from 0; of several, the first one's. */
  rawEventId = 0;
  /** Engine events that this one stands for before coalescing; those above 1 are removes that were read as one. */
  eventCount = 1;

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

  /** As the constructor, out of a pool: it lives as long as the lists of its native batch. */
  static pooled(
    type: PlacementEventType,
    dpRank: number,
    storageTier: StorageTier,
    blockHashes: U64List,
    tokensHashes: U64List | null,
    arrivedAtMs: number,
  ): PlacementEvent {
    const event = pool.take();
    event.type = type;
    event.dpRank = dpRank;
    event.storageTier = storageTier;
    event.blockHashes = blockHashes;
    event.tokensHashes = tokensHashes;
    event.arrivedAtMs = arrivedAtMs;
    event.hasParent = false;
    event.parentLow = 0;
    event.parentHigh = 0;
    event.mmInfos = null;
    event.sessionId = null;
    event.rawEventId = 0;
    event.eventCount = 1;
    return event;
  }

  /** A copy with lists of its own, for who keeps it longer than its native batch. */
  withLists(blockHashes: U64List, tokensHashes: U64List | null): PlacementEvent {
    const { type, dpRank, storageTier, arrivedAtMs } = this;
    const copy = new PlacementEvent(
      type,
      dpRank,
      storageTier,
      blockHashes,
      tokensHashes,
      arrivedAtMs,
    );
    copy.hasParent = this.hasParent;
    copy.parentLow = this.parentLow;
    copy.parentHigh = this.parentHigh;
    copy.mmInfos = this.mmInfos;
    copy.sessionId = this.sessionId;
    copy.rawEventId = this.rawEventId;
    copy.eventCount = this.eventCount;
    return copy;
  }

  /** Leaves a remove its first `blocks` blocks; the others are the one returned. */
  cutAt(blocks: number): PlacementEvent {
    const { blockHashes } = this;
    const rest = this.withLists(blockHashes.slice(blocks, blockHashes.length - blocks), null);
    rest.rawEventId += blocks;
    blockHashes.length = blocks;
    return rest;
  }

  /** Blocks stored or removed, before reference counts are looked at. */
  get blockCount(): number {
    return this.blockHashes.length;
  }

  /** An empty remove: counts let no other pass. Tells routers the newest id, and changes nothing. */
  get isHeartbeat(): boolean {
    return this.type === 'removed' && this.blockCount === 0;
  }

  /** A root store of 2 blocks or more: the form in which an engine reports what it already holds. */
  get mayBeFullReport(): boolean {
    return this.type === 'stored' && !this.hasParent && this.blockCount >= 2;
  }
}

const pool = new ArenaPool(
  () => new PlacementEvent('cleared', 0, 'device', new U64List(0), null, 0),
);

/** Events of one engine message, or of one flush, in order. */
export type PlacementBatch = PlacementEvent[];
