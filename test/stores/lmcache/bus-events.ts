import type {
  BusEvent,
  EventName,
  MetadataOf,
  ObjectKey,
} from '../../../src/engines/lmcache/contracts.ts';

export function busEvent<Name extends EventName>(
  name: Name,
  metadata: MetadataOf<Name>,
  { at = 1, session = 's1' }: { readonly at?: number; readonly session?: string } = {},
): BusEvent {
  return { name, timestamp: at, sessionId: session, metadata } as BusEvent;
}

function objectKey(index: number, changes: Partial<ObjectKey> = {}): ObjectKey {
  const chunk_hash = Buffer.alloc(32);
  chunk_hash.writeUInt32BE(index, 28);
  return {
    chunk_hash,
    model_name: 'm1',
    kv_rank: 0,
    object_group_id: 0,
    cache_salt: '',
    ...changes,
  };
}

export function objectKeys(count: number, changes: Partial<ObjectKey> = {}): ObjectKey[] {
  return Array.from({ length: count }, (_, index) => objectKey(index, changes));
}
