/**
 * One Mooncake event map. Keys may come in any order and the last of equal ones counts; unknown ones are
 * skipped.
 *
 * Names    the event type stands under `event_type` (RFC #1527), under `type` (legacy), or under both,
 *          which then agree. `seq_hashes` and `parent_hash` likewise have `block_hashes` and
 *          `parent_block_hash` beside them or in their place; what they hold is not used.
 * Absent   fields that may be nil may be left out as well; the others may be neither.
 */
import { isUtf8 } from 'node:buffer';
import { BAD_FIELD, DecodeFault, MISSING_FIELD, UNKNOWN_TAG } from '../decode-fault.ts';
import type { FieldReader } from './field-reader.ts';
import type { MooncakeEvent, MooncakeEventType, MooncakeMedium } from './message.ts';

/** Longest key that is kept. */
export const MAX_KEY_BYTES = 4096;

/** The key is too long, or no UTF-8. */
export const BAD_KEY: DecodeFault = new DecodeFault('bad_hash');

const TYPES: Readonly<Record<string, MooncakeEventType>> = {
  stored: 'stored',
  removed: 'removed',
  cleared: 'cleared',
};

const LEGACY_TYPES: Readonly<Record<string, MooncakeEventType>> = {
  BlockStored: 'stored',
  BlockRemoved: 'removed',
  AllBlocksCleared: 'cleared',
};

class Fields {
  eventType: string | null = null;
  legacyType: string | null = null;
  eventId: bigint | null = null;
  timestampMs: number | null = null;
  modelName: string | null = null;
  blockSize: number | null = null;
  additionalSalt: string | null = null;
  loraName: string | null = null;
  tenantId: string | null = null;
  backendId: string | null = null;
  medium: string | null = null;
  dpRank: number | null = null;
  objectKey: Uint8Array | null = null;
  groupId: string | null = null;
  sessionId: string | null = null;
}

export function readMooncakeEvent(reader: FieldReader): MooncakeEvent {
  const pairs = reader.openMap();
  const fields = new Fields();
  for (let pair = 0; pair < pairs; pair++) {
    const key = reader.readKey(pair);
    if (!readEnvelopeField(reader, fields, key) && !readObjectField(reader, fields, key)) {
      reader.skip();
    }
  }
  reader.closeContainer();
  return eventOf(fields);
}

/** Reads the value of an envelope's key; false, and nothing consumed, for any other. */
function readEnvelopeField(reader: FieldReader, fields: Fields, key: string): boolean {
  switch (key) {
    case 'event_id':
      fields.eventId = reader.readU64();
      return true;
    case 'timestamp':
      fields.timestampMs = reader.readI64();
      return true;
    case 'event_type':
      fields.eventType = reader.readName(key);
      return true;
    case 'type':
      fields.legacyType = reader.readName(key);
      return true;
    case 'model_name':
      fields.modelName = reader.readNameOrNil(key);
      return true;
    case 'block_size':
      fields.blockSize = reader.skipNil() ? null : reader.readU32();
      return true;
    case 'additional_salt':
      fields.additionalSalt = reader.readNameOrNil(key);
      return true;
    case 'lora_name':
      fields.loraName = reader.readNameOrNil(key);
      return true;
    case 'tenant_id':
      fields.tenantId = reader.readName(key);
      return true;
    case 'backend_id':
      fields.backendId = reader.readName(key);
      return true;
    case 'medium':
      fields.medium = reader.readNameOrNil(key);
      return true;
    case 'dp_rank':
      fields.dpRank = reader.readU32();
      return true;
    default:
      return false;
  }
}

function readObjectField(reader: FieldReader, fields: Fields, key: string): boolean {
  switch (key) {
    case 'group_id':
      fields.groupId = reader.readNameOrNil(key);
      return true;
    case 'object_key':
      fields.objectKey = reader.skipNil() ? null : reader.readTextBytes();
      return true;
    case 'session_id':
      fields.sessionId = reader.readNameOrNil(key);
      return true;
    case 'seq_hashes':
    case 'block_hashes':
    case 'token_ids':
      reader.skipListOrNil();
      return true;
    default:
      return false;
  }
}

function eventOf(fields: Fields): MooncakeEvent {
  const eventType = typeOf(fields);
  const { eventId, timestampMs, tenantId, backendId, dpRank } = fields;
  if (eventId === null || timestampMs === null) throw MISSING_FIELD;
  if (tenantId === null || backendId === null || dpRank === null) throw MISSING_FIELD;
  const isCleared = eventType === 'cleared';
  return {
    eventType,
    eventId,
    timestampMs,
    modelName: fields.modelName,
    blockSize: fields.blockSize,
    additionalSalt: fields.additionalSalt,
    loraName: fields.loraName,
    tenantId,
    backendId,
    medium: isCleared ? null : mediumOf(fields.medium),
    dpRank,
    objectKey: isCleared ? null : keyOf(fields.objectKey),
    groupId: isCleared ? null : fields.groupId,
    sessionId: eventType === 'stored' ? fields.sessionId : null,
  };
}

function typeOf({ eventType, legacyType }: Fields): MooncakeEventType {
  const given = eventType === null ? undefined : TYPES[eventType];
  const legacy = legacyType === null ? undefined : LEGACY_TYPES[legacyType];
  if (eventType === null && legacyType === null) throw MISSING_FIELD;
  const type = given ?? legacy;
  if (type === undefined) throw UNKNOWN_TAG;
  const isUnknown = (eventType !== null && !given) || (legacyType !== null && !legacy);
  if (isUnknown) throw UNKNOWN_TAG;
  if (given !== undefined && legacy !== undefined && given !== legacy) throw BAD_FIELD;
  return type;
}

function mediumOf(medium: string | null): MooncakeMedium {
  if (medium === null) throw MISSING_FIELD;
  if (medium === 'cpu' || medium === 'disk') return medium;
  throw BAD_FIELD;
}

function keyOf(key: Uint8Array | null): Uint8Array {
  if (key === null) throw MISSING_FIELD;
  if (key.length > MAX_KEY_BYTES || !isUtf8(key)) throw BAD_KEY;
  return key;
}
