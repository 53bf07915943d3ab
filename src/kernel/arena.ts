/**
 * Arena: memory for the lists of one native batch, handed out in order and given up as a whole.
 *
 * Invariant  a list lives until the next `reset()`, which the worker calls before it reads the next
 *            message. A list knows its epoch, so one used too late is an error and never wrong bytes.
 */
import { allocateBlock, wasm } from './kernel.ts';

const CHUNK_BYTES = 1 << 18;

class Arena {
  /** Counts resets; part of every list made here. */
  epoch = 1;
  #chunks: { address: number; shift: number }[] = [allocateBlock(CHUNK_BYTES)];
  #next: number = this.#chunks[0]?.address ?? 0;
  #end: number = this.#next + CHUNK_BYTES;

  /** Address of `bytes` bytes, aligned to 8. Throws KernelMemoryError. */
  take(bytes: number): number {
    const size = (bytes + 7) & ~7;
    if (size < bytes || this.#next + size > this.#end) return this.#takeFromNewChunk(bytes);
    const address = this.#next;
    this.#next += size;
    return address;
  }

  /** Ends the life of every list taken since the last reset. */
  reset(): void {
    this.epoch++;
    while (this.#chunks.length > 1) {
      const chunk = this.#chunks.pop() as { address: number; shift: number };
      wasm.release(chunk.address, chunk.shift);
    }
    const first = this.#chunks[0] as { address: number; shift: number };
    this.#next = first.address;
    this.#end = first.address + 2 ** first.shift;
  }

  #takeFromNewChunk(bytes: number): number {
    const chunk = allocateBlock(Math.max(bytes + 8, CHUNK_BYTES));
    this.#chunks.push(chunk);
    this.#next = chunk.address + Math.ceil(bytes / 8) * 8;
    this.#end = chunk.address + 2 ** chunk.shift;
    return chunk.address;
  }
}

/** The one arena: batches are read and relayed one at a time, without a pause between. */
export const arena: Arena = new Arena();
