/**
 * Image data of an event, one entry a block: nil or an info.
 *
 * info    {mm_objects: [object, …]}                 or [[object, …]]
 * object  {mm_hash: u64, offsets: [[start, end], …]} or [mm_hash, offsets]
 *
 * Decoded directly (map events), a `bin` counts as the list of its bytes; decoded through a buffer (the
 * tail of array events) it does not.
 * Source  ai-dynamo/dynamo 1.6.1, observed.
 */
import type { MmInfo } from '../protocol/multimodal.ts';
import { BAD_FIELD, DAMAGED, OVERSIZE } from './decode-fault.ts';
import { type Decoding, readFieldMap } from './field-key.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

/** Elements of one list that are read; each becomes an object. */
const MAX_ELEMENTS = 1 << 16;

const INFO_FIELDS = ['mm_objects'] as const;
const OBJECT_FIELDS = ['mm_hash', 'offsets'] as const;

type MmInfos = (MmInfo | null)[];
type MmObject = { mmHash: bigint; offsets: BigUint64Array };

/** The infos of a map event. */
export function readMmInfos(reader: MsgpackReader): MmInfos {
  return new MmInfoReader(reader, 'direct').read();
}

/** The infos in a tail slot; undefined, and nothing consumed, where the value is something else. */
export function tryReadMmInfos(reader: MsgpackReader): MmInfos | undefined {
  const { position, depth } = reader;
  try {
    return new MmInfoReader(reader, 'buffered').read();
  } catch (fault) {
    if (fault === DAMAGED || fault === OVERSIZE) throw fault;
    reader.position = position;
    reader.depth = depth;
    return undefined;
  }
}

class MmInfoReader {
  readonly #reader: MsgpackReader;
  readonly #decoding: Decoding;

  constructor(reader: MsgpackReader, decoding: Decoding) {
    this.#reader = reader;
    this.#decoding = decoding;
  }

  read(): MmInfos {
    return this.#readList(() => this.#readInfo());
  }

  #readList<Element>(readElement: () => Element): Element[] {
    const reader = this.#reader;
    if (this.#decoding === 'direct' && reader.isBin()) {
      // Its bytes are numbers, which no element here is: only an empty one is a list.
      if (reader.readBytes().length > 0) throw BAD_FIELD;
      return [];
    }
    const count = reader.openArray();
    if (count > MAX_ELEMENTS) throw OVERSIZE;
    const elements: Element[] = [];
    for (let index = 0; index < count; index++) elements.push(readElement());
    reader.closeContainer();
    return elements;
  }

  #readInfo(): MmInfo | null {
    if (this.#reader.skipNil()) return null;
    let objects: MmObject[] = [];
    this.#readStruct(INFO_FIELDS, () => {
      objects = this.#readList(() => this.#readObject());
    });
    return {
      mmHashes: BigUint64Array.from(objects, (object) => object.mmHash),
      offsets: objects.map((object) => object.offsets),
    };
  }

  #readObject(): MmObject {
    let mmHash = 0n;
    let offsets: BigUint64Array = new BigUint64Array(0);
    this.#readStruct(OBJECT_FIELDS, (index) => {
      if (index === 0) mmHash = this.#reader.readU64();
      else offsets = this.#readOffsets();
    });
    return { mmHash, offsets };
  }

  #readOffsets(): BigUint64Array {
    return BigUint64Array.from(this.#readList(() => this.#readPair()).flat());
  }

  #readPair(): bigint[] {
    const reader = this.#reader;
    if (this.#decoding === 'direct' && reader.isBin()) {
      const bytes = reader.readBytes();
      // Bytes behind the first two are not looked at, unlike elements of an array.
      if (bytes.length < 2) throw BAD_FIELD;
      return [...bytes.subarray(0, 2)].map(BigInt);
    }
    const pair: bigint[] = [];
    this.#readTuple(2, () => pair.push(reader.readU64()));
    return pair;
  }

  #readStruct(fields: readonly string[], read: (index: number) => void): void {
    if (this.#reader.isMap()) readFieldMap(this.#reader, fields, this.#decoding, read);
    else this.#readTuple(fields.length, read);
  }

  #readTuple(length: number, read: (index: number) => void): void {
    if (this.#reader.openArray() !== length) throw BAD_FIELD;
    for (let index = 0; index < length; index++) read(index);
    this.#reader.closeContainer();
  }
}
