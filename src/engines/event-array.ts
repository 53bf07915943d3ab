/**
 * One engine event in array form to a RawEvent with Dynamo's accept set; event-map.ts has maps.
 *
 * BlockStored       [1] block_hashes  list of hash, [] allowed
 *                   [2] parent_block_hash  hash or nil (a root; 0 is a hash)
 *                   [3] token_ids  list of u32, or of [u32, u32] (Eagle: windows overlap by one)
 *                   [4] block_size  unsigned
 *                   [5] old lora_id  unsigned or nil, no effect
 *                   [6] medium  text; "" is absent
 *                   [7] lora_name  text, or SGLang's map {cache_salt}
 *                   [8] extra_keys      [9…] see event-tail.ts
 * BlockRemoved      [1] block_hashes  [2] medium  [3…] tail
 * AllBlocksCleared  [1] ownership  text or nil
 * Ignored           anything
 *
 * Throws  a DecodeFault; what it was reading is then half consumed.
 */
import { RawEvent } from '../protocol/native-batch.ts';
import { BAD_FIELD, MISSING_FIELD } from './decode-fault.ts';
import { readMedium, readParent, readTokenIds, typeOfTag } from './event-fields.ts';
import { readTail } from './event-tail.ts';
import { readExtraKeys } from './extra-keys.ts';
import { readFieldMap } from './field-key.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

const METADATA_FIELDS = ['cache_salt'] as const;

export function readArrayEvent(reader: MsgpackReader): RawEvent {
  const count = reader.openArray();
  if (count === 0) throw BAD_FIELD;
  const event = new RawEvent(typeOfTag(reader.readText()));
  let taken = 1;
  if (event.type === 'stored') taken = readStored(reader, event, count);
  else if (event.type === 'removed') taken = readRemoved(reader, event, count);
  else if (event.type === 'cleared' && count > 1) {
    event.ownership = reader.readTextOrNil();
    taken = 2;
  }
  for (; taken < count; taken++) reader.skip();
  reader.closeContainer();
  return event;
}

/** Reads every slot of the array and returns their count. */
function readStored(reader: MsgpackReader, event: RawEvent, count: number): number {
  if (count < 5) throw MISSING_FIELD;
  event.blockHashes = reader.readHashes();
  readParent(reader, event);
  readTokenIds(reader, event);
  event.blockSize = reader.readUnsigned();
  if (count > 5 && !reader.skipNil()) event.hasLoraId = reader.readUnsigned() !== 0;
  if (count > 6) event.medium = readMedium(reader);
  if (count > 7) readLoraNameOrMetadata(reader, event);
  if (count > 8) readExtraKeys(reader, event);
  if (count > 9) readTail(reader, event, count - 9);
  return count;
}

function readRemoved(reader: MsgpackReader, event: RawEvent, count: number): number {
  if (count < 2) throw MISSING_FIELD;
  event.blockHashes = reader.readHashes();
  if (count > 2) event.medium = readMedium(reader);
  if (count > 3) readTail(reader, event, count - 3);
  return count;
}

function readLoraNameOrMetadata(reader: MsgpackReader, event: RawEvent): void {
  if (!reader.isMap()) {
    event.loraName = reader.readTextOrNil();
    return;
  }
  readFieldMap(reader, METADATA_FIELDS, 'buffered', () => {
    event.cacheSalt = reader.readText() || null;
    // Unlike an empty salt in a map event, an empty one here leaves the extra keys in force.
    event.hasSaltField = event.cacheSalt !== null;
  });
}
