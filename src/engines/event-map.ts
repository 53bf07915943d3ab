/**
 * One engine event in map form. Keys may come in any order, the last of equal ones counts, unknown
 * ones are skipped, and known ones have to be of their type whatever the tag. A map with `event_type` is
 * an event of a store, which may have an engine's tag beside it.
 */
import { diverges } from '../protocol/compat.ts';
import { type Locality, RawEvent } from '../protocol/native-batch.ts';
import { BAD_FIELD, MISSING_FIELD, UNKNOWN_TAG } from './decode-fault.ts';
import { readMedium, readParent, readTokenIds, typeOfTag } from './event-fields.ts';
import { localityOf } from './event-tail.ts';
import { readExtraKeys } from './extra-keys.ts';
import { readMmInfos } from './mm-infos.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

export function readMapEvent(reader: MsgpackReader): RawEvent {
  const pairs = reader.openMap();
  const event = new RawEvent('ignored');
  let tag: string | null = null;
  let hasBlockSize = false;
  for (let pair = 0; pair < pairs; pair++) {
    const key = reader.readText();
    if (key === 'event_type' && diverges(reader.compat, 'store-event')) throw UNKNOWN_TAG;
    if (key === 'type') tag = reader.readText();
    else if (!readField(reader, event, key)) reader.skip();
    if (key === 'block_size') hasBlockSize = true;
  }
  reader.closeContainer();
  if (tag === null) throw MISSING_FIELD;
  const type = typeOfTag(tag);
  event.type = type;
  const needsHashes = type === 'stored' || type === 'removed';
  if (needsHashes && event.blockHashes === null) throw MISSING_FIELD;
  if (type === 'stored' && (event.tokens === null || !hasBlockSize)) throw MISSING_FIELD;
  if (type !== 'stored') event.sessionId = null;
  return event;
}

/** The tag of a map event whose other fields need not be right; the last of equal keys counts. */
export function tagOfMap(reader: MsgpackReader): string | undefined {
  let tag: string | undefined;
  const pairs = reader.openMap();
  for (let pair = 0; pair < pairs; pair++) {
    const key = readKeyOrSkip(reader);
    if (key === 'type' && reader.isText()) tag = reader.readTextOrUndefined();
    else reader.skip();
  }
  return tag;
}

function readKeyOrSkip(reader: MsgpackReader): string | undefined {
  if (reader.isText()) return reader.readTextOrUndefined();
  reader.skip();
  return undefined;
}

/** Reads the value of a known key; false, and nothing consumed, for any other. */
function readField(reader: MsgpackReader, event: RawEvent, key: string): boolean {
  switch (key) {
    case 'block_hashes':
      event.blockHashes = reader.readHashes();
      return true;
    case 'parent_block_hash':
      readParent(reader, event);
      return true;
    case 'token_ids':
      readTokenIds(reader, event);
      return true;
    case 'block_size':
      event.blockSize = reader.readUnsigned();
      return true;
    case 'lora_id':
      // An unknown key to the real reader, so any value goes; 0 is no adapter in either form.
      event.hasLoraId = reader.isInteger() && reader.peek() !== 0;
      reader.skip();
      return true;
    case 'medium':
      event.medium = readMedium(reader);
      return true;
    case 'lora_name':
      event.loraName = reader.readTextOrNil();
      return true;
    case 'cache_salt':
      readSalt(reader, event);
      return true;
    case 'extra_keys':
      readExtraKeys(reader, event);
      return true;
    case 'block_mm_infos':
      event.mmInfos = reader.skipNil() ? null : readMmInfos(reader);
      return true;
    default:
      return readCacheGroupField(reader, event, key);
  }
}

function readCacheGroupField(reader: MsgpackReader, event: RawEvent, key: string): boolean {
  switch (key) {
    case 'group_idx':
      event.groupIdx = reader.skipNil() ? null : reader.readU32();
      return true;
    case 'kv_cache_spec_kind':
      event.specKind = reader.readTextOrNil();
      return true;
    case 'kv_cache_spec_sliding_window':
      // No rule looks at the window, but a wrong type costs the event.
      if (!reader.skipNil()) reader.readU32();
      return true;
    case 'locality':
      readLocality(reader, event);
      return true;
    case 'ownership':
      event.ownership = reader.readTextOrNil();
      return true;
    case 'session_id':
      event.sessionId = reader.readTextOrNil();
      return true;
    default:
      return false;
  }
}

function readSalt(reader: MsgpackReader, event: RawEvent): void {
  const salt = reader.readTextOrNil();
  event.hasSaltField = salt !== null;
  event.cacheSalt = salt || null;
}

/** A text, the index of a variant (0 LOCAL, 1 REMOTE), or either as the key of a map {variant: nil}. */
function readLocality(reader: MsgpackReader, event: RawEvent): void {
  if (!reader.isMap()) {
    event.locality = reader.skipNil() ? null : readVariant(reader);
    return;
  }
  if (reader.openMap() !== 1) throw BAD_FIELD;
  event.locality = readVariant(reader);
  if (!reader.skipNil()) throw BAD_FIELD;
  reader.closeContainer();
}

function readVariant(reader: MsgpackReader): Locality | null {
  // Text that is no UTF-8 is a variant like any other that is not known.
  if (reader.isText()) return localityOf(reader.readTextOrUndefined() ?? '');
  const marker = reader.peek();
  if (marker >= 0x80 && (marker < 0xcc || marker > 0xcf)) throw BAD_FIELD;
  const variant = reader.readInteger();
  return variant === 0 ? 'LOCAL' : variant === 1 ? 'REMOTE' : 'other';
}
