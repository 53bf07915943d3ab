/**
 * Keys of the small maps inside events (image data, SGLang's metadata). Their reader takes a key as
 * text or as the index of a field, ignores keys it does not know, and refuses a known one given twice.
 *
 * An index is an unsigned integer; where the real reader buffers a value before it knows its type (the
 * tail, SGLang's metadata), it takes only the one-byte and the eight-byte encodings for one.
 * Source  ai-dynamo/dynamo 1.6.1, observed: structs with derived serde deserialisers.
 */
import { BAD_FIELD, MISSING_FIELD } from './decode-fault.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

/** How the real reader comes to a value: straight from the bytes, or through a buffer. */
export type Decoding = 'direct' | 'buffered';

const DIRECT_INDEX_MARKERS: readonly number[] = [0xcc, 0xcd, 0xce, 0xcf];
const BUFFERED_INDEX_MARKERS: readonly number[] = [0xcc, 0xcf];

/** Index of the field that the key at hand names; -1 for one to be ignored. Consumes the key. */
function readFieldKey(
  reader: MsgpackReader,
  fields: readonly string[],
  decoding: Decoding,
): number {
  if (reader.isText()) {
    const key = reader.readTextOrUndefined();
    return key === undefined ? -1 : fields.indexOf(key);
  }
  const marker = reader.peek();
  const markers = decoding === 'direct' ? DIRECT_INDEX_MARKERS : BUFFERED_INDEX_MARKERS;
  if (marker >= 0x80 && !markers.includes(marker)) throw BAD_FIELD;
  const index = reader.readInteger();
  return index < fields.length ? index : -1;
}

/** Reads a map in which each of `fields` has to stand once; `read` takes the value of field `index`. */
export function readFieldMap(
  reader: MsgpackReader,
  fields: readonly string[],
  decoding: Decoding,
  read: (index: number) => void,
): void {
  const pairs = reader.openMap();
  const seen = new Set<number>();
  for (let pair = 0; pair < pairs; pair++) {
    const index = readFieldKey(reader, fields, decoding);
    if (index < 0) {
      reader.skip();
      continue;
    }
    if (seen.has(index)) throw BAD_FIELD;
    seen.add(index);
    read(index);
  }
  if (seen.size < fields.length) throw MISSING_FIELD;
  reader.closeContainer();
}
