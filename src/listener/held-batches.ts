/**
 * HeldBatches: batches that came before their turn, in the order of their numbers.
 *
 * Bounds   maxBatches and maxBytes of payload; beyond either nothing more is kept.
 * Cost     the end is where almost all are added, the front where all are taken.
 */
import type { EngineMessage } from './frames.ts';

export interface HoldBounds {
  readonly holdBatches: number;
  readonly holdBytes: number;
}

export class HeldBatches {
  readonly #bounds: HoldBounds;
  #batches: EngineMessage[] = [];
  /** Those before it have been taken. */
  #head = 0;
  #bytes = 0;

  constructor(bounds: HoldBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#batches.length - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** That of the lowest number; null where nothing is held. */
  get first(): EngineMessage | null {
    return this.#batches[this.#head] ?? null;
  }

  get(sequence: bigint): EngineMessage | null {
    const message = this.#batches[this.#placeOf(sequence)];
    return message?.sequence === sequence ? message : null;
  }

  add(message: EngineMessage): 'kept' | 'repeated' | 'full' {
    const at = this.#placeOf(message.sequence);
    if (this.#batches[at]?.sequence === message.sequence) return 'repeated';
    const { holdBatches, holdBytes } = this.#bounds;
    const bytes = this.#bytes + message.payload.length;
    if (this.size >= holdBatches || bytes > holdBytes) return 'full';
    if (at === this.#batches.length) this.#batches.push(message);
    else this.#batches.splice(at, 0, message);
    this.#bytes = bytes;
    return 'kept';
  }

  takeFirst(): void {
    const message = this.#batches[this.#head];
    if (message === undefined) return;
    this.#head++;
    this.#bytes -= message.payload.length;
    // Half of the array is free: moving the rest costs no more than what was taken.
    if (this.#head * 2 >= this.#batches.length) {
      this.#batches = this.#batches.slice(this.#head);
      this.#head = 0;
    }
  }

  countBelow(sequence: bigint): number {
    return this.#placeOf(sequence) - this.#head;
  }

  clear(): void {
    this.#batches = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  /** Index of the first batch whose number is not below `sequence`. */
  #placeOf(sequence: bigint): number {
    let low = this.#head;
    let high = this.#batches.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const number = this.#batches[middle]?.sequence;
      if (number !== undefined && number < sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
