/** Messages as a Mooncake master publishes them, made by hand. */
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false });

export type EventFields = Readonly<Record<string, unknown>>;

const LEGACY: Readonly<Record<string, string>> = {
  stored: 'BlockStored',
  removed: 'BlockRemoved',
  cleared: 'AllBlocksCleared',
};

/** A complete event in the publisher's key order; what `fields` holds is in place of its own. */
export function mooncakeEvent(
  eventType: 'stored' | 'removed' | 'cleared',
  eventId: number,
  fields: EventFields = {},
): EventFields {
  const isCleared = eventType === 'cleared';
  return {
    event_id: eventId,
    timestamp: 1_790_000_000_000n + BigInt(eventId),
    event_type: eventType,
    type: LEGACY[eventType],
    model_name: null,
    block_size: null,
    additional_salt: null,
    lora_name: null,
    tenant_id: 'default',
    backend_id: 'mooncake-1',
    medium: isCleared ? null : 'cpu',
    dp_rank: 0,
    ...(isCleared ? {} : objectFields(eventType)),
    ...fields,
  };
}

function objectFields(eventType: 'stored' | 'removed'): EventFields {
  const both = { group_id: null, object_key: 'k', seq_hashes: [], block_hashes: [] };
  if (eventType === 'removed') return { ...both, base_block_idx: null };
  return {
    ...both,
    session_id: null,
    base_block_idx: null,
    parent_hash: null,
    token_ids: null,
    parent_block_hash: null,
  };
}

/** The event without these fields. */
export function without(event: EventFields, ...names: readonly string[]): EventFields {
  return Object.fromEntries(Object.entries(event).filter(([name]) => !names.includes(name)));
}

export function mooncakePayload(
  events: readonly unknown[],
  timestampMs = 1_790_000_000_000,
): Buffer {
  return packr.pack([BigInt(timestampMs), events, 0]);
}

export function mooncakeFrames(sequence: number | bigint, events: readonly unknown[]): Buffer[] {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(sequence));
  return [Buffer.alloc(0), number, mooncakePayload(events)];
}
