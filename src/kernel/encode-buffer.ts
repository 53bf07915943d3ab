/**
 * EncodeBuffer: bytes being written in kernel memory, one event after the other.
 *
 * Owns     one block, grown by copying; its contents live until reset().
 * Text     is written byte by byte where it is ASCII, which names and ids are.
 */
import { allocateBlock, type KernelBlock, releaseBlock, views, wasm } from './kernel.ts';
import type { U64List } from './u64-list.ts';

const FIRST_BYTES = 1 << 16;

/** Largest size that is kept for the next batch. */
const KEPT_BYTES = 1 << 22;

/** Most that a store or remove takes around its blocks, its template's parts apart. */
const MAX_EVENT_NUMBER_BYTES = 64;

/** Most that one block of a store takes: two full u64 and three keys. */
export const MAX_BLOCK_BYTES = 57;

export interface StoreFields {
  readonly blockHashes: U64List;
  readonly hasParent: boolean;
  readonly parentLow: number;
  readonly parentHigh: number;
  readonly dpRank: number;
}

/** Bytes that never change, in kernel memory for as long as the process lives. */
export class ConstantBytes {
  readonly address: number;
  readonly length: number;

  constructor(bytes: Uint8Array) {
    // Copied 16 bytes at a time.
    this.address = allocateBlock(bytes.length + 16).address;
    this.length = bytes.length;
    views.u8.set(bytes, this.address);
  }
}

/** The parts around an event's numbers and blocks: head, middle, second middle, tail. */
export class EventTemplate {
  readonly address: number;
  readonly bytes: number;

  constructor(parts: readonly [ConstantBytes, ConstantBytes, ConstantBytes, ConstantBytes]) {
    this.address = allocateBlock(parts.length * 8).address;
    this.bytes = parts.reduce((sum, { length }) => sum + length, 0);
    const words = parts.flatMap(({ address, length }) => [address, length]);
    views.u32.set(words, this.address >>> 2);
  }
}

export class EncodeBuffer {
  #block: KernelBlock = allocateBlock(FIRST_BYTES);
  #length = 0;

  /** Bytes written since reset(). */
  get length(): number {
    return this.#length;
  }

  reset(): void {
    this.#length = 0;
    if (this.#block.bytes <= KEPT_BYTES) return;
    releaseBlock(this.#block);
    this.#block = allocateBlock(FIRST_BYTES);
  }

  /** Gives the memory back; the buffer is not used again. */
  free(): void {
    releaseBlock(this.#block);
  }

  /** A view on what stands from `start` to `end`; it ends with the next write. */
  bytes(start: number, end: number): Uint8Array {
    return views.u8.subarray(this.#block.address + start, this.#block.address + end);
  }

  putByte(byte: number): void {
    this.#reserve(1);
    views.u8[this.#block.address + this.#length++] = byte;
  }

  putBytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    const at = this.#block.address + this.#length;
    const { u8 } = views;
    for (let index = 0; index < bytes.length; index++) u8[at + index] = bytes[index] as number;
    this.#length += bytes.length;
  }

  /** An unsigned integer of up to 2^53 in its smallest form. */
  putUnsigned(value: number): void {
    this.putU64(value >>> 0, Math.floor(value / 2 ** 32));
  }

  putU64(low: number, high: number): void {
    this.#reserve(9);
    const at = this.#block.address + this.#length;
    this.#length = (wasm.putU64(at, low, high) >>> 0) - this.#block.address;
  }

  putBigInt(value: bigint): void {
    this.putU64(Number(value & 0xffff_ffffn), Number(value >> 32n));
  }

  putArrayHeader(count: number): void {
    this.#putHeader(count, 0x90, 0xdc);
  }

  putMapHeader(count: number): void {
    this.#putHeader(count, 0x80, 0xde);
  }

  putText(text: string): void {
    const bytes = Buffer.from(text, 'utf8');
    const { length } = bytes;
    if (length < 32) this.putByte(0xa0 | length);
    else if (length < 2 ** 8) this.#putSized(0xd9, 1, length);
    else if (length < 2 ** 16) this.#putSized(0xda, 2, length);
    else this.#putSized(0xdb, 4, length);
    this.putBytes(bytes);
  }

  /** Blocks `start` to `end` of a store, none of which has image data. */
  putBlocks(blockHashes: U64List, tokensHashes: U64List, start: number, end: number): void {
    const count = end - start;
    this.#reserve(count * MAX_BLOCK_BYTES);
    const hashes = blockHashes.address + start * 8;
    const tokens = tokensHashes.address + start * 8;
    const at = this.#block.address + this.#length;
    this.#length = (wasm.putBlocks(at, hashes, tokens, count) >>> 0) - this.#block.address;
  }

  /** A whole store without images; `parent` where it has one. */
  putStored(
    template: EventTemplate,
    eventId: number,
    event: StoreFields,
    tokensHashes: U64List,
  ): void {
    const { blockHashes, hasParent, parentLow, parentHigh, dpRank } = event;
    const { length } = blockHashes;
    this.#reserve(template.bytes + MAX_EVENT_NUMBER_BYTES + length * MAX_BLOCK_BYTES);
    const next = wasm.putStored(
      this.#block.address + this.#length,
      template.address,
      eventId,
      eventId / 2 ** 32,
      hasParent ? 1 : 0,
      parentLow,
      parentHigh,
      blockHashes.address,
      tokensHashes.address,
      length,
      dpRank,
    );
    this.#length = (next >>> 0) - this.#block.address;
  }

  /** A whole remove. */
  putRemoved(
    { address, bytes }: EventTemplate,
    eventId: number,
    hashes: U64List,
    rank: number,
  ): void {
    const { length } = hashes;
    this.#reserve(bytes + MAX_EVENT_NUMBER_BYTES + length * 9);
    const at = this.#block.address + this.#length;
    const high = eventId / 2 ** 32;
    const next = wasm.putRemoved(at, address, eventId, high, hashes.address, length, rank);
    this.#length = (next >>> 0) - this.#block.address;
  }

  /** Takes the last `count` bytes back. */
  unput(count: number): void {
    this.#length -= count;
  }

  #putHeader(count: number, fixed: number, marker16: number): void {
    if (count < 16) this.putByte(fixed | count);
    else if (count < 2 ** 16) this.#putSized(marker16, 2, count);
    else this.#putSized(marker16 + 1, 4, count);
  }

  #putSized(marker: number, width: number, value: number): void {
    this.putByte(marker);
    for (let shift = (width - 1) * 8; shift >= 0; shift -= 8)
      this.putByte((value >>> shift) & 0xff);
  }

  /** Room for `bytes` more, and for the kernel's last write, which may reach a few bytes further. */
  #reserve(bytes: number): void {
    const needed = this.#length + bytes + 16;
    if (needed <= this.#block.bytes) return;
    const larger = allocateBlock(needed);
    const from = this.#block.address;
    views.u8.copyWithin(larger.address, from, from + this.#length);
    releaseBlock(this.#block);
    this.#block = larger;
  }
}
