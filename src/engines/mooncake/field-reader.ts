/**
 * FieldReader: the typed values of Mooncake's event maps.
 *
 * Fast     a publisher writes the same keys in the same order and the same names over and over: both are
 *          found by comparing bytes with what stood there before, without making a string.
 * Throws   as MsgpackCursor; BAD_FIELD for a value of another type or range than asked for.
 */
import { isUtf8 } from 'node:buffer';
import { BAD_FIELD, DAMAGED } from '../decode-fault.ts';
import { MsgpackCursor } from '../msgpack-cursor.ts';

/** Longest text of any field but the key. */
export const MAX_NAME_BYTES = 1024;

interface Seen {
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** Positions in a map whose key is remembered. */
const REMEMBERED_POSITIONS = 64;

export class FieldReader extends MsgpackCursor {
  readonly #keys: (Seen | undefined)[] = [];
  readonly #names = new Map<string, Seen>();

  /** The key of the pair at hand; '' for one that is no text. `position` counts the map's pairs. */
  readKey(position: number): string {
    if (!this.isText()) {
      this.skip();
      return '';
    }
    const length = this.openText();
    const seen = this.#keys[position];
    if (seen !== undefined && this.#spells(seen.bytes, length)) {
      this.position += length;
      return seen.text;
    }
    const read = this.#take(length);
    if (position < REMEMBERED_POSITIONS && length <= MAX_NAME_BYTES) this.#keys[position] = read;
    return read.text;
  }

  /** A text of at most MAX_NAME_BYTES; `field` tells whose last value it may repeat. */
  readName(field: string): string {
    if (this.isBin()) throw BAD_FIELD;
    const length = this.openText();
    if (length > MAX_NAME_BYTES) throw BAD_FIELD;
    const seen = this.#names.get(field);
    if (seen !== undefined && this.#spells(seen.bytes, length)) {
      this.position += length;
      return seen.text;
    }
    if (!isUtf8(this.bytes.subarray(this.position, this.position + length))) throw BAD_FIELD;
    const read = this.#take(length);
    this.#names.set(field, read);
    return read.text;
  }

  readNameOrNil(field: string): string | null {
    return this.skipNil() ? null : this.readName(field);
  }

  /** The bytes of a text, a view of the payload. */
  readTextBytes(): Uint8Array {
    if (this.isBin()) throw BAD_FIELD;
    const length = this.openText();
    this.position += length;
    return this.bytes.subarray(this.position - length, this.position);
  }

  readU64(): bigint {
    const marker = this.peek();
    if (marker === 0xcf) return this.#bits64();
    const value = this.#integer();
    if (value < 0) throw BAD_FIELD;
    return marker === 0xd3 ? this.#lastBits64() : BigInt(value);
  }

  readU32(): number {
    const value = this.#integer();
    if (value < 0 || value > 0xffff_ffff) throw BAD_FIELD;
    return value;
  }

  /** A signed integer of 64 bits, rounded where a number cannot hold it. */
  readI64(): number {
    const value = this.#integer();
    if (value >= 2 ** 63) throw BAD_FIELD;
    return value;
  }

  /** A list of anything, or nil. */
  skipListOrNil(): void {
    if (this.skipNil()) return;
    if (!this.isArray()) throw BAD_FIELD;
    this.skip();
  }

  #take(length: number): Seen {
    const bytes = this.bytes.slice(this.position, this.position + length);
    this.position += length;
    return { bytes, text: Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('utf8') };
  }

  #spells(known: Uint8Array, length: number): boolean {
    if (known.length !== length) return false;
    const { bytes, position } = this;
    for (let index = 0; index < length; index++) {
      if (known[index] !== bytes[position + index]) return false;
    }
    return true;
  }

  #integer(): number {
    const marker = this.peek();
    if (marker < 0x80 || marker >= 0xe0) {
      this.position++;
      return marker < 0x80 ? marker : marker - 256;
    }
    if (marker < 0xcc || marker > 0xd3) throw BAD_FIELD;
    const width = 1 << (marker & 3);
    const at = this.position + 1;
    this.consume(1 + width);
    const isSigned = marker >= 0xd0;
    if (width === 1) return isSigned ? this.view.getInt8(at) : this.view.getUint8(at);
    if (width === 2) return isSigned ? this.view.getInt16(at) : this.view.getUint16(at);
    if (width === 4) return isSigned ? this.view.getInt32(at) : this.view.getUint32(at);
    const high = isSigned ? this.view.getInt32(at) : this.view.getUint32(at);
    return high * 2 ** 32 + this.view.getUint32(at + 4);
  }

  #bits64(): bigint {
    if (this.position + 9 > this.end) throw DAMAGED;
    this.position += 9;
    return this.#lastBits64();
  }

  #lastBits64(): bigint {
    return this.view.getBigUint64(this.position - 8);
  }
}
