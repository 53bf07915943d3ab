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
import { ConstantBytes, EncodeBuffer, EventTemplate } from '../kernel/encode-buffer.ts';
import type { MmInfo } from './multimodal.ts';
import type { PlacementBatch, PlacementEvent } from './placement-event.ts';
import { STORAGE_TIERS, type StorageTier } from './storage-tier.ts';

/** Events that leave together, numbered and encoded. */
export interface RouterBatch {
  readonly events: PlacementBatch;
  /** Publish id of the first event; the others follow without a hole. */
  readonly firstEventId: number;
  /** The events' bytes, one event after the other. */
  readonly encoded: EncodeBuffer;
  /** Where each event's bytes end. */
  readonly ends: readonly number[];
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

/** What stands around an event's numbers and blocks, by tier. */
interface Templates {
  readonly heads: Record<StorageTier, Uint8Array>;
  readonly stored: Record<StorageTier, EventTemplate>;
  readonly removed: Record<StorageTier, EventTemplate>;
}

const NONE = new ConstantBytes(new Uint8Array(0));
const DATA_STORED_PART = new ConstantBytes(DATA_STORED);
const START_POSITION_AND_BLOCKS_PART = new ConstantBytes(START_POSITION_AND_BLOCKS);
const DATA_REMOVED_PART = new ConstantBytes(DATA_REMOVED);
const DP_RANK_PART = new ConstantBytes(DP_RANK);

/** By worker id and count of keys: they are the kernel's for good, and a worker's are all alike. */
const made = new Map<string, Templates>();

function templatesOf(workerId: bigint, keyCount: number): Templates {
  const name = `${workerId} ${keyCount}`;
  const present = made.get(name) ?? templates(workerId, keyCount);
  made.set(name, present);
  return present;
}

function templates(workerId: bigint, keyCount: number): Templates {
  const byTier = <Value>(of: (tier: StorageTier) => Value): Record<StorageTier, Value> => {
    const entries = STORAGE_TIERS.map((tier) => [tier, of(tier)] as const);
    return Object.fromEntries(entries) as Record<StorageTier, Value>;
  };
  const heads = byTier((tier) => head(workerId, tier, keyCount));
  const parts = byTier((tier) => new ConstantBytes(heads[tier]));
  return {
    heads,
    stored: byTier(
      (tier) =>
        new EventTemplate([
          parts[tier],
          DATA_STORED_PART,
          START_POSITION_AND_BLOCKS_PART,
          DP_RANK_PART,
        ]),
    ),
    removed: byTier(
      (tier) => new EventTemplate([parts[tier], DATA_REMOVED_PART, NONE, DP_RANK_PART]),
    ),
  };
}

/** Writes the router events of one worker. */
export class RouterEventEncoder {
  readonly #templates: Templates;
  readonly #templatesWithSession: Templates;

  constructor(workerId: bigint) {
    this.#templates = templatesOf(workerId, 4);
    this.#templatesWithSession = templatesOf(workerId, 5);
  }

  /** What stands around the numbers and blocks of a store without session or images. */
  storedTemplate(storageTier: StorageTier): EventTemplate {
    return this.#templates.stored[storageTier];
  }

  /** Appends the event to `buffer`. */
  encode(buffer: EncodeBuffer, event: PlacementEvent, eventId: number): void {
    const { sessionId, storageTier, blockHashes, dpRank } = event;
    const { heads, stored, removed } =
      sessionId === null ? this.#templates : this.#templatesWithSession;
    if (event.type === 'removed') {
      buffer.putRemoved(removed[storageTier], eventId, blockHashes, dpRank);
    } else if (event.type === 'stored' && event.mmInfos === null && event.tokensHashes !== null) {
      buffer.putStored(stored[storageTier], eventId, event, event.tokensHashes);
    } else {
      buffer.putBytes(heads[storageTier]);
      buffer.putUnsigned(eventId);
      if (event.type === 'stored') putStoredWithImages(buffer, event);
      else buffer.putBytes(DATA_CLEARED);
      buffer.putBytes(DP_RANK);
      buffer.putUnsigned(dpRank);
    }
    if (sessionId === null) return;
    buffer.putBytes(SESSION_ID);
    buffer.putText(sessionId);
  }
}

function putStoredWithImages(buffer: EncodeBuffer, event: PlacementEvent): void {
  const { blockHashes, tokensHashes, mmInfos } = event;
  buffer.putBytes(DATA_STORED);
  if (event.hasParent) buffer.putU64(event.parentLow, event.parentHigh);
  else buffer.putByte(NIL);
  buffer.putBytes(START_POSITION_AND_BLOCKS);
  buffer.putArrayHeader(blockHashes.length);
  if (tokensHashes === null) return;
  for (let block = 0; block < blockHashes.length; block++) {
    buffer.putBlocks(blockHashes, tokensHashes, block, block + 1);
    const info = mmInfos?.[block] ?? null;
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
