/**
 * Sequence hashes: where a block stands, as one u64 of all tokens hashes up to it.
 *
 * Hash     the first block's tokens hash, then XXH3-64 over the hash before and the tokens hash, both LE, seed 1337.
 * Source   ai-dynamo/dynamo 1.6.1: what its routers make of a request.
 */
import { views } from '../kernel/kernel.ts';
import { U64List } from '../kernel/u64-list.ts';
import { digestAt, type U64Words } from '../kernel/xxh3.ts';

const SEED: U64Words = { low: 1337, high: 0 };

/** Walks down a chain. Lives as long as the lists of the message that it was made for. */
export class SequenceHasher {
  /** Of the block looked at last; signed words. */
  low = 0;
  high = 0;
  readonly #input = U64List.of(0n, 0n);
  #isRoot = true;

  /** Goes on behind the block with this hash; without, at the root. */
  startBehind(low: number, high: number): void {
    this.#isRoot = false;
    this.low = low | 0;
    this.high = high | 0;
  }

  push(tokensLow: number, tokensHigh: number): void {
    if (this.#isRoot) {
      this.startBehind(tokensLow, tokensHigh);
      return;
    }
    const word = this.#input.address >>> 2;
    views.i32[word] = this.low;
    views.i32[word + 1] = this.high;
    views.i32[word + 2] = tokensLow;
    views.i32[word + 3] = tokensHigh;
    const { low, high } = digestAt(this.#input.address, 16, SEED);
    this.low = low | 0;
    this.high = high | 0;
  }
}
