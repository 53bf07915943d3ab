/**
 * Arena: memory for the lists of one native batch, handed out in order and given up as a whole.
 *
 * Invariant  a list lives until the next `reset()`, which the worker calls before it reads the next
 *            message. A list knows its epoch, so one used too late is an error and never wrong bytes.
 */
import { allocateBlock, type KernelBlock, releaseBlock } from './kernel.ts';

const CHUNK_BYTES = 1 << 18;

class Arena {
  /** Counts resets; part of every list made here. */
  epoch = 1;
  readonly #first: KernelBlock = allocateBlock(CHUNK_BYTES);
  /** Taken for a batch that outgrows the first chunk, given back with it. */
  readonly #more: KernelBlock[] = [];
  #next: number = this.#first.address;
  #end: number = this.#next + CHUNK_BYTES;

  /** Address of `bytes` bytes, aligned to 8. Throws KernelMemoryError. */
  take(bytes: number): number {
    const size = (bytes + 7) & ~7;
    if (size < bytes || this.#next + size > this.#end) return this.#takeFromNewChunk(bytes);
    const address = this.#next;
    this.#next += size;
    return address;
  }

  /** Where the kernel may lay lists itself, to `end`; `advanceTo` says how far it did. */
  get next(): number {
    return this.#next;
  }

  get end(): number {
    return this.#end;
  }

  advanceTo(address: number): void {
    this.#next = address;
  }

  /** Ends the life of every list taken since the last reset. */
  reset(): void {
    this.epoch++;
    for (let chunk = this.#more.pop(); chunk; chunk = this.#more.pop()) releaseBlock(chunk);
    this.#next = this.#first.address;
    this.#end = this.#next + CHUNK_BYTES;
  }

  #takeFromNewChunk(bytes: number): number {
    const chunk = allocateBlock(Math.max(bytes + 8, CHUNK_BYTES));
    this.#more.push(chunk);
    this.#next = chunk.address + Math.ceil(bytes / 8) * 8;
    this.#end = chunk.address + chunk.bytes;
    return chunk.address;
  }
}

/** The one arena: batches are read and relayed one at a time, without a pause between. */
export const arena: Arena = new Arena();
