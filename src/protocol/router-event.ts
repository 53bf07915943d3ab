/**
 * Router event: what a router applies to its index, and its bytes.
 *
 * RouterEvent      worker_id u64, storage_tier, residency_domain, event, session_id (where there is one)
 * event            event_id u64, data, dp_rank u32
 * data             {stored: {parent_hash u64|nil, start_position nil, blocks}} |
 *                  {removed: {block_hashes}} | "cleared"
 * block            block_hash u64, tokens_hash u64, mm_extra_info nil|{mm_objects: [{mm_hash, offsets}]}
 *
 * Keys in this order, nils present, integers in their smallest unsigned form.
 * Source  ai-dynamo/dynamo 1.6.1, RouterEvent as rmp-serde writes it (named fields).
 */
import { EncodeBuffer } from '../kernel/encode-buffer.ts';
import type { MmInfo } from './multimodal.ts';
import type { PlacementEvent } from './placement-event.ts';
import { STORAGE_TIERS, type StorageTier } from './storage-tier.ts';

/** A placement event with its publish id and where its bytes stand in the batch's buffer. */
export interface RouterEvent {
  /** Counts published events of a publisher, from 1. */
  readonly eventId: number;
  readonly placement: PlacementEvent;
  readonly start: number;
  readonly end: number;
}

/** Events that leave together; `encoded` holds their bytes, one after the other, in order. */
export interface RouterBatch {
  readonly events: readonly RouterEvent[];
  readonly encoded: EncodeBuffer;
}

const NIL = 0xc0;

/** Bytes that `write` puts into an empty buffer, for parts that never change. */
function constant(write: (buffer: EncodeBuffer) => void): Uint8Array {
  scratch.reset();
  write(scratch);
  return scratch.bytes(0, scratch.length).slice();
}
const scratch = new EncodeBuffer();

const DATA_STORED = constant((buffer) => {
  buffer.putText('data');
  buffer.putMapHeader(1);
  buffer.putText('stored');
  buffer.putMapHeader(3);
  buffer.putText('parent_hash');
});
const START_POSITION_AND_BLOCKS = constant((buffer) => {
  buffer.putText('start_position');
  buffer.putByte(NIL);
  buffer.putText('blocks');
});
const DATA_REMOVED = constant((buffer) => {
  buffer.putText('data');
  buffer.putMapHeader(1);
  buffer.putText('removed');
  buffer.putMapHeader(1);
  buffer.putText('block_hashes');
});
const DATA_CLEARED = constant((buffer) => {
  buffer.putText('data');
  buffer.putText('cleared');
});
const DP_RANK = constant((buffer) => buffer.putText('dp_rank'));
const SESSION_ID = constant((buffer) => buffer.putText('session_id'));
const MM_OBJECTS = constant((buffer) => buffer.putText('mm_objects'));
const MM_HASH = constant((buffer) => buffer.putText('mm_hash'));
const OFFSETS = constant((buffer) => buffer.putText('offsets'));

/** Everything up to the event id, which depends on worker and tier alone. */
function head(workerId: bigint, storageTier: StorageTier, keyCount: number): Uint8Array {
  return constant((buffer) => {
    buffer.putMapHeader(keyCount);
    buffer.putText('worker_id');
    buffer.putBigInt(workerId);
    buffer.putText('storage_tier');
    buffer.putText(storageTier);
    buffer.putText('residency_domain');
    buffer.putText('worker');
    buffer.putText('event');
    buffer.putMapHeader(3);
    buffer.putText('event_id');
  });
}

function heads(workerId: bigint, keyCount: number): Record<StorageTier, Uint8Array> {
  const entries = STORAGE_TIERS.map((tier) => [tier, head(workerId, tier, keyCount)] as const);
  return Object.fromEntries(entries) as Record<StorageTier, Uint8Array>;
}

/** Writes the router events of one worker. */
export class RouterEventEncoder {
  readonly #heads: Record<StorageTier, Uint8Array>;
  readonly #headsWithSession: Record<StorageTier, Uint8Array>;

  constructor(workerId: bigint) {
    this.#heads = heads(workerId, 4);
    this.#headsWithSession = heads(workerId, 5);
  }

  /** Appends the event to `buffer`. */
  encode(buffer: EncodeBuffer, event: PlacementEvent, eventId: number): void {
    const headsBySession = event.sessionId === null ? this.#heads : this.#headsWithSession;
    buffer.putBytes(headsBySession[event.storageTier]);
    buffer.putUnsigned(eventId);
    if (event.type === 'stored') putStored(buffer, event);
    else if (event.type === 'removed') putRemoved(buffer, event);
    else buffer.putBytes(DATA_CLEARED);
    buffer.putBytes(DP_RANK);
    buffer.putUnsigned(event.dpRank);
    if (event.sessionId === null) return;
    buffer.putBytes(SESSION_ID);
    buffer.putText(event.sessionId);
  }
}

function putRemoved(buffer: EncodeBuffer, event: PlacementEvent): void {
  buffer.putBytes(DATA_REMOVED);
  buffer.putArrayHeader(event.blockHashes.length);
  buffer.putHashes(event.blockHashes);
}

function putStored(buffer: EncodeBuffer, event: PlacementEvent): void {
  const { blockHashes, tokensHashes, mmInfos } = event;
  buffer.putBytes(DATA_STORED);
  if (event.hasParent) buffer.putU64(event.parentLow, event.parentHigh);
  else buffer.putByte(NIL);
  buffer.putBytes(START_POSITION_AND_BLOCKS);
  buffer.putArrayHeader(blockHashes.length);
  if (tokensHashes === null) return;
  if (mmInfos === null) {
    buffer.putBlocks(blockHashes, tokensHashes, 0, blockHashes.length);
    return;
  }
  for (let block = 0; block < blockHashes.length; block++) {
    buffer.putBlocks(blockHashes, tokensHashes, block, block + 1);
    const info = mmInfos[block] ?? null;
    if (info === null) continue;
    // The nil that stands last in a block without images makes room for them.
    buffer.unput(1);
    putMmInfo(buffer, info);
  }
}

function putMmInfo(buffer: EncodeBuffer, { mmHashes, offsets }: MmInfo): void {
  buffer.putMapHeader(1);
  buffer.putBytes(MM_OBJECTS);
  buffer.putArrayHeader(mmHashes.length);
  for (const [object, mmHash] of mmHashes.entries()) {
    const pairs = offsets[object] ?? new BigUint64Array(0);
    buffer.putMapHeader(2);
    buffer.putBytes(MM_HASH);
    buffer.putBigInt(mmHash);
    buffer.putBytes(OFFSETS);
    buffer.putArrayHeader(pairs.length / 2);
    for (const [index, offset] of pairs.entries()) {
      if (index % 2 === 0) buffer.putArrayHeader(2);
      buffer.putBigInt(offset);
    }
  }
}
