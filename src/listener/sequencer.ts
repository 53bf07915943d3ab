/**
 * Sequencer: the watermark over one engine's sequence numbers.
 *
 * Counts   numbers that never came: those below the first one, and those a jump leaves out. A number
 *          that is not above the watermark starts a new count from there and is not judged.
 * Passes   every message on, whatever its number (`strict`).
 * Bounds   2^64 − 1 is no engine's number (it marks the end of a replay) and leaves the watermark.
 */
const END_MARKER = 2n ** 64n - 1n;

/** No engine gets through so many numbers between two messages: a jump that wide says nothing but "some". */
const MAX_GAP = 2n ** 32n;

export class Sequencer {
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
    if (sequence <= next) return 0;
    return sequence - next > MAX_GAP ? 1 : Number(sequence - next);
  }
}
