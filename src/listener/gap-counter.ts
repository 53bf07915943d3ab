/**
 * GapCounter: the watermark of `strict`, which passes every message on, whatever its number.
 *
 * Counts   numbers that never came: those below the first one, and those a jump leaves out. A number
 *          that is not above the watermark starts a new count from there and is not judged.
 * Bounds   2^64 − 1 is no engine's number (it marks the end of a replay) and leaves the watermark.
 */
import { countBetween } from './sequence-count.ts';

const END_MARKER = 2n ** 64n - 1n;

export class GapCounter {
  #highest: bigint | null = null;

  /** Number of the last message; null before the first one. */
  get highest(): bigint | null {
    return this.#highest;
  }

  /** Takes the next message's number; returns how many numbers are missing before it. */
  observe(sequence: bigint): number {
    if (sequence === END_MARKER) return 0;
    const next = this.#highest === null ? 0n : this.#highest + 1n;
    this.#highest = sequence;
    return countBetween(next, sequence);
  }
}
