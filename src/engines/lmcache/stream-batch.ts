/**
 * A batch of the MP server's KV event stream, checked.
 *
 * batch    map: `enabled` bool, `incarnation` int (ns at the server's start, above 2^53), `next_cursor` int >= 0,
 *          `lost` bool, `events` [record]
 * record   map: `seq` int, `kind` str, `medium` str, `model_name` str, `block_hashes` [bin], `parent_block_hash` bin|nil,
 *          `token_ids` [u32], empty where it is `removed`
 * Faults   a record that cannot be used costs itself; where it may have taken something away its place is kept.
 * Bounds   as those of a message of the bridge; hashes a record, bytes a hash, tokens a record.
 * Throws   never.
 * Source   LMCache 0.5.6.
 */
import { Unpackr } from 'msgpackr';
import { messageSizeFault } from './message-size.ts';

/** The largest page that a server takes. */
const MAX_PAGE_RECORDS = 1024;
const MAX_HASHES = 65_536;
const MAX_HASH_BYTES = 128;
const MAX_TOKENS = 65_536;
const CPU = 'CPU';

export interface StoredRecord {
  readonly kind: 'stored';
  readonly hash: Uint8Array;
  readonly parentHash: Uint8Array | null;
  readonly tokenIds: readonly number[];
}

export interface RemovedRecord {
  readonly kind: 'removed';
  readonly hashes: readonly Uint8Array[];
}

/** Nobody can say what it has taken away. */
export interface UnreadableRecord {
  readonly kind: 'unreadable';
}

export type StreamRecord = StoredRecord | RemovedRecord | UnreadableRecord;
export type StreamRecordFault = 'unknown_type' | 'bad_field';
export type StreamBatchFault = 'msgpack' | 'batch_shape' | 'oversize';

export interface StreamBatch {
  readonly isEnabled: boolean;
  readonly incarnation: bigint;
  readonly nextCursor: number;
  readonly isLost: boolean;
  readonly records: readonly StreamRecord[];
  /** One for each record that cannot be used. */
  readonly faults: readonly StreamRecordFault[];
}

/** A 64-bit integer becomes a bigint only beyond 2^53; the option is there, but not in the types. */
const unpackr = Object.assign(new Unpackr({ mapsAsObjects: true, useRecords: false }), {
  int64AsType: 'auto',
});

/** A word instead of the batch: what is wrong with it. Hashes are views of the payload. */
export function readStreamBatch(
  payload: Uint8Array,
  modelName: string,
): StreamBatch | StreamBatchFault {
  const fault = messageSizeFault(payload);
  if (fault !== null) return fault;
  let batch: unknown;
  try {
    batch = unpackr.unpack(payload);
  } catch {
    return 'msgpack';
  }
  if (!isRecord(batch)) return 'batch_shape';
  const { enabled, incarnation, next_cursor: nextCursor, lost, events } = batch;
  if (typeof enabled !== 'boolean' || typeof lost !== 'boolean') return 'batch_shape';
  if (!isInteger(incarnation) || !isCount(nextCursor) || !Array.isArray(events)) {
    return 'batch_shape';
  }
  if (events.length > MAX_PAGE_RECORDS) return 'oversize';
  const records: StreamRecord[] = [];
  const faults: StreamRecordFault[] = [];
  for (const event of events as unknown[]) {
    const read = readRecord(event, modelName);
    if (typeof read !== 'string') records.push(read);
    else faults.push(read);
    if (read === 'bad_field' && !claimsToBeStored(event)) records.push({ kind: 'unreadable' });
  }
  const checked = { isEnabled: enabled, isLost: lost, nextCursor, records, faults };
  return { ...checked, incarnation: BigInt(incarnation) };
}

function readRecord(event: unknown, modelName: string): StreamRecord | StreamRecordFault {
  if (!isRecord(event) || typeof event.kind !== 'string') return 'bad_field';
  const { kind, medium, model_name: model } = event;
  if (kind !== 'stored' && kind !== 'removed') return 'unknown_type';
  if (typeof medium !== 'string' || model !== modelName) return 'bad_field';
  if (medium !== CPU) return 'unknown_type';
  const { block_hashes: hashes, parent_block_hash: parentHash, token_ids: tokenIds } = event;
  if (!Array.isArray(hashes) || hashes.length > MAX_HASHES || !hashes.every(isHash)) {
    return 'bad_field';
  }
  if (kind === 'removed') return { kind, hashes };
  const [hash] = hashes;
  if (hash === undefined || hashes.length !== 1 || !isTokens(tokenIds)) return 'bad_field';
  if (parentHash !== null && !isHash(parentHash)) return 'bad_field';
  return { kind, hash, parentHash, tokenIds };
}

function claimsToBeStored(event: unknown): boolean {
  return isRecord(event) && event.kind === 'stored';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isHash(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length > 0 && value.length <= MAX_HASH_BYTES;
}

function isTokens(value: unknown): value is readonly number[] {
  const isToken = (token: unknown): boolean =>
    typeof token === 'number' && Number.isInteger(token) && token >= 0 && token < 2 ** 32;
  return Array.isArray(value) && value.length <= MAX_TOKENS && value.every(isToken);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isInteger(value: unknown): value is number | bigint {
  return typeof value === 'bigint' || Number.isSafeInteger(value);
}
