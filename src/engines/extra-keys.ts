/**
 * Extra keys: what else went into a block's hash, an entry a block: nil or a list of items.
 *
 * item  text | [text, int] | int | float | bool | list of 0…255
 *
 * Only texts have a meaning here; the rest is checked and left out. A `bin` in place of a block's list
 * is a list of its bytes, and in place of the whole it has to be empty. What cannot be told apart by a
 * router (nil, bytes that are no text) is refused in strict and marks the event in safe.
 */

import { diverges } from '../protocol/compat.ts';
import type { ExtraKey, RawEvent } from '../protocol/native-batch.ts';
import { BAD_FIELD, OVERSIZE } from './decode-fault.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

/** Elements of one level that are read; each becomes an object, so the payload's size is no bound. */
const MAX_ELEMENTS = 1 << 18;

const NO_KEYS: readonly ExtraKey[] = [];

/** Reads the field to `event`: the texts a block, null where no block has any. */
export function readExtraKeys(reader: MsgpackReader, event: RawEvent): void {
  event.extraKeys = reader.skipNil() ? null : readBlocks(reader, event);
}

function readBlocks(
  reader: MsgpackReader,
  event: RawEvent,
): readonly (readonly ExtraKey[])[] | null {
  if (reader.isBin()) {
    if (reader.readBytes().length > 0) throw BAD_FIELD;
    return null;
  }
  const blockCount = openBounded(reader);
  let blocks: (readonly ExtraKey[])[] | null = null;
  for (let block = 0; block < blockCount; block++) {
    const keys = reader.skipNil() ? NO_KEYS : readBlockKeys(reader, event);
    if (keys.length === 0 && blocks === null) continue;
    // Blocks before the first one with texts were passed over: most events have none at all.
    blocks ??= new Array<readonly ExtraKey[]>(block).fill(NO_KEYS);
    blocks.push(keys);
  }
  reader.closeContainer();
  return blocks;
}

function readBlockKeys(reader: MsgpackReader, event: RawEvent): readonly ExtraKey[] {
  if (reader.isBin()) {
    reader.skip();
    return NO_KEYS;
  }
  const itemCount = openBounded(reader);
  let keys: ExtraKey[] | null = null;
  for (let item = 0; item < itemCount; item++) {
    const key = readItem(reader, event);
    if (key === null) continue;
    keys ??= [];
    keys.push(key);
  }
  reader.closeContainer();
  return keys ?? NO_KEYS;
}

function openBounded(reader: MsgpackReader): number {
  const count = reader.openArray();
  if (count > MAX_ELEMENTS) throw OVERSIZE;
  return count;
}

function readItem(reader: MsgpackReader, event: RawEvent): ExtraKey | null {
  if (diverges(reader.compat, 'unsupported-extra-key') && skipUnsupported(reader)) {
    event.hasUnsupportedExtraKey = true;
    return null;
  }
  if (reader.isText()) return { text: reader.readText(), hasOffset: false };
  if (reader.isArray()) return readListItem(reader);
  const marker = reader.peek();
  const isFloat = marker === 0xca || marker === 0xcb;
  const isBoolean = marker === 0xc2 || marker === 0xc3;
  if (!isFloat && !isBoolean && !reader.isInteger()) throw BAD_FIELD;
  reader.skip();
  return null;
}

/** Consumes a nil or bytes that are no text; false, and nothing consumed, for anything else. */
function skipUnsupported(reader: MsgpackReader): boolean {
  if (reader.skipNil()) return true;
  if (!reader.isText()) return false;
  const { position } = reader;
  if (reader.readTextOrUndefined() === undefined) return true;
  reader.position = position;
  return false;
}

function readListItem(reader: MsgpackReader): ExtraKey | null {
  const count = reader.openArray();
  let key: ExtraKey | null = null;
  if (count === 2 && reader.isText()) {
    key = { text: reader.readText(), hasOffset: true };
    reader.readInteger();
  } else {
    for (let index = 0; index < count; index++) {
      const byte = reader.readInteger();
      if (byte < 0 || byte > 255) throw BAD_FIELD;
    }
  }
  reader.closeContainer();
  return key;
}
