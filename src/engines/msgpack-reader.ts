/**
 * MsgpackReader: the typed values of one MessagePack payload, lists straight into kernel memory.
 *
 * Texts    `str` and `bin` alike, where the bytes are valid UTF-8; floats and booleans are no integers.
 * Throws   as MsgpackCursor, and BAD_FIELD or BAD_HASH for a value out of range.
 * Source   the accept set of ai-dynamo/dynamo 1.6.1 (rmp-serde).
 */
import { isUtf8 } from 'node:buffer';
import { arena } from '../kernel/arena.ts';
import {
  allocateBlock,
  type KernelBlock,
  releaseBlock,
  resultAddress,
  views,
  wasm,
} from '../kernel/kernel.ts';
import { TokenList } from '../kernel/token-list.ts';
import { U64List, u64Of } from '../kernel/u64-list.ts';
import { type Compat, diverges } from '../protocol/compat.ts';
import { BAD_FIELD, BAD_HASH, DAMAGED, type DecodeFault } from './decode-fault.ts';
import { knownText } from './known-texts.ts';
import { MsgpackCursor } from './msgpack-cursor.ts';

/** Returned by the kernel's list readers in place of an address. */
const KERNEL_TRUNCATED = 2;

/** The kernel compares texts 8 bytes at a time. */
const KERNEL_OVERREAD_BYTES = 8;

/** Smallest and largest block that is kept for the next payload. */
const MIN_INPUT_BYTES = 1 << 16;
const KEPT_INPUT_BYTES = 1 << 20;

export class MsgpackReader extends MsgpackCursor {
  /** `safe` reads what `strict` refuses: hashes as bytes, extra keys of unknown kinds. */
  readonly compat: Compat;
  /** Words of the integer that `readHash` read last, signed. */
  low = 0;
  high = 0;
  #input: KernelBlock = allocateBlock(MIN_INPUT_BYTES);

  constructor(compat: Compat) {
    super();
    this.compat = compat;
  }

  /** Starts on a payload. Throws KernelMemoryError where it is larger than memory allows. */
  override open(payload: Uint8Array): void {
    super.open(payload);
    const room = this.#input.bytes;
    const needed = payload.length + KERNEL_OVERREAD_BYTES;
    if (needed > room || room > KEPT_INPUT_BYTES) {
      const larger = allocateBlock(Math.max(needed, MIN_INPUT_BYTES));
      releaseBlock(this.#input);
      this.#input = larger;
    }
    views.u8.set(payload, this.#input.address);
  }

  /** Gives the memory back; the reader is not used again. */
  free(): void {
    releaseBlock(this.#input);
  }

  /** A text, `str` or `bin`. Throws BAD_FIELD for another type or bytes that are no UTF-8. */
  readText(): string {
    const text = this.readTextOrUndefined();
    if (text === undefined) throw BAD_FIELD;
    return text;
  }

  /** As readText(), undefined in place of bytes that are no UTF-8. */
  readTextOrUndefined(): string | undefined {
    const length = this.openText();
    const start = this.position;
    this.position = start + length;
    return knownText(this.bytes, start, length) ?? decodeText(this.bytes, start, length);
  }

  /** The bytes of a text or bin, valid until the payload is dropped. */
  readBytes(): Uint8Array {
    const length = this.openText();
    this.position += length;
    return this.bytes.subarray(this.position - length, this.position);
  }

  readTextOrNil(): string | null {
    return this.skipNil() ? null : this.readText();
  }

  /** An integer that fits u32. */
  readU32(): number {
    const value = this.readInteger();
    if (value < 0 || value > 0xffff_ffff) throw BAD_FIELD;
    return value;
  }

  /** An integer of at least 0; -1 for one that a number cannot hold exactly. */
  readUnsigned(): number {
    const value = this.readInteger();
    if (value < 0) throw BAD_FIELD;
    return Number.isSafeInteger(value) ? value : -1;
  }

  /** Any integer, rounded where a number cannot hold it. */
  readInteger(): number {
    const marker = this.peek();
    if (marker < 0x80) {
      this.position++;
      return marker;
    }
    if (marker >= 0xe0) {
      this.position++;
      return marker - 256;
    }
    if (marker < 0xcc || marker > 0xd3) throw BAD_FIELD;
    const width = 1 << (marker & 3);
    const at = this.position + 1;
    if (at + width > this.end) throw DAMAGED;
    this.position = at + width;
    const view = this.view;
    const isSigned = marker >= 0xd0;
    if (width === 1) return isSigned ? view.getInt8(at) : view.getUint8(at);
    if (width === 2) return isSigned ? view.getInt16(at) : view.getUint16(at);
    if (width === 4) return isSigned ? view.getInt32(at) : view.getUint32(at);
    const high = isSigned ? view.getInt32(at) : view.getUint32(at);
    return high * 2 ** 32 + view.getUint32(at + 4);
  }

  /** A hash, i64 or u64 with equal bits, to `low` and `high`. */
  readHash(): void {
    const marker = this.peek();
    if (marker === 0xcf || marker === 0xd3) {
      const at = this.position + 1;
      if (at + 8 > this.end) throw DAMAGED;
      this.high = this.view.getInt32(at);
      this.low = this.view.getInt32(at + 4);
      this.position = at + 8;
      return;
    }
    if (!this.isInteger()) {
      this.#readByteHash();
      return;
    }
    const value = this.readInteger();
    this.low = value | 0;
    this.high = value < 0 ? -1 : 0;
  }

  /** A u64; throws BAD_FIELD for negative ones. */
  readU64(): bigint {
    const marker = this.peek();
    if (!this.isInteger() || (marker >= 0xe0 && marker <= 0xff)) throw BAD_FIELD;
    this.readHash();
    if (marker >= 0xd0 && marker <= 0xd3 && this.high < 0) throw BAD_FIELD;
    return u64Of(this.low, this.high);
  }

  /** A time: any integer or float; the value plays no part. */
  skipNumber(): void {
    const marker = this.peek();
    if (marker === 0xca || marker === 0xcb) this.consume(marker === 0xca ? 5 : 9);
    else this.readInteger();
  }

  /** Events that `readPlainEvents` consumed last. */
  plainEvents = 0;

  /**
   * Consumes up to `count` events of the plain form, to records in kernel memory at `records`, and returns
   * how many records; events.ts of the kernel has their form.
   */
  readPlainEvents(count: number, records: number): number {
    const takesBytes = diverges(this.compat, 'byte-hash') ? 1 : 0;
    const at = this.#at();
    const { next, end } = arena;
    const to = resultAddress;
    const written = wasm.readEvents(at, this.#atEnd(), count, takesBytes, next, end, records, to);
    this.position = (views.u32[to >>> 2] as number) - this.#input.address;
    arena.advanceTo(views.u32[(to >>> 2) + 1] as number);
    this.plainEvents = views.u32[(to >>> 2) + 2] as number;
    return written;
  }

  /** A list of hashes. The real reader takes a `bin` as a list of its bytes, so this one does. */
  readHashes(): U64List {
    if (this.isBin()) return this.#readByteHashes();
    const count = this.openArray();
    const list = new U64List(count);
    const takesBytes = diverges(this.compat, 'byte-hash') ? 1 : 0;
    const next = wasm.readHashes(this.#at(), this.#atEnd(), count, list.address, takesBytes);
    this.#finishList(next, BAD_HASH);
    list.length = count;
    this.closeContainer();
    return list;
  }

  /** Token ids of an array that `openArray` has opened with `count` elements. */
  readTokens(count: number): TokenList {
    const list = new TokenList(count);
    this.#finishList(wasm.readTokens(this.#at(), this.#atEnd(), count, list.address), BAD_FIELD);
    return list;
  }

  /** As readTokens(), of pairs that overlap: the first members and the last pair's second one. */
  readBigrams(count: number): TokenList {
    const list = new TokenList(count + 1);
    this.#finishList(wasm.readBigrams(this.#at(), this.#atEnd(), count, list.address), BAD_FIELD);
    return list;
  }

  /** A digest: its last 8 bytes, big-endian, as engines shorten it themselves. */
  #readByteHash(): void {
    if (!diverges(this.compat, 'byte-hash') || !this.isBin()) throw BAD_HASH;
    const bytes = this.readBytes();
    if (bytes.length < 8) throw BAD_HASH;
    const view = new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 8, 8);
    this.high = view.getInt32(0);
    this.low = view.getInt32(4);
  }

  #readByteHashes(): U64List {
    const bytes = this.readBytes();
    const list = new U64List(bytes.length);
    for (const byte of bytes) list.push(byte, 0);
    return list;
  }

  #at(): number {
    return this.#input.address + this.position;
  }

  #atEnd(): number {
    return this.#input.address + this.end;
  }

  #finishList(next: number, wrongType: DecodeFault): void {
    const address = next >>> 0;
    if (address <= KERNEL_TRUNCATED) throw address === KERNEL_TRUNCATED ? DAMAGED : wrongType;
    this.position = address - this.#input.address;
  }
}

function decodeText(bytes: Uint8Array, start: number, length: number): string | undefined {
  const part = bytes.subarray(start, start + length);
  if (!isUtf8(part)) return undefined;
  return Buffer.from(part.buffer, part.byteOffset, length).toString('utf8');
}
