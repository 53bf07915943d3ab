/**
 * Recognises SGLang before 0.5.6, whose chains no router can rebuild: a page's hash was Python's hash of
 * its own tokens, wherever the page stands, and parents were missing or made up.
 *
 * Signs   a parent equal to hash(()), or a first block hash equal to hash of its page's token tuple.
 * Source  CPython 3.8 and later, tuple hashing (an xxHash variant); SGLang 0.4.6 to 0.5.5.
 */
import { u64Of } from '../kernel/u64-list.ts';
import type { RawEvent } from '../protocol/native-batch.ts';

const PRIME_1 = 11_400_714_785_074_694_791n;
const PRIME_2 = 14_029_467_366_897_019_727n;
const PRIME_5 = 2_870_177_450_012_600_261n;
const LENGTH_SALT = PRIME_5 ^ 3_527_539n;
const ERROR_VALUE = 2n ** 64n - 1n;
const ERROR_REPLACEMENT = 1_546_275_796n;

/** Python's hash of a tuple of non-negative integers below 2^61 − 1, as u64. */
export function pythonTupleHash(values: readonly number[]): bigint {
  let hash = PRIME_5;
  for (const value of values) {
    hash = BigInt.asUintN(64, hash + BigInt(value) * PRIME_2);
    hash = BigInt.asUintN(64, (hash << 31n) | (hash >> 33n));
    hash = BigInt.asUintN(64, hash * PRIME_1);
  }
  hash = BigInt.asUintN(64, hash + (BigInt(values.length) ^ LENGTH_SALT));
  return hash === ERROR_VALUE ? ERROR_REPLACEMENT : hash;
}

const EMPTY_TUPLE_HASH = pythonTupleHash([]);

/** Whether a store bears the signs. */
export function isPositionBlind(event: RawEvent): boolean {
  const { blockHashes, tokens, blockSize } = event;
  if (event.type !== 'stored' || blockHashes === null || tokens === null) return false;
  const parent = u64Of(event.parentLow, event.parentHigh);
  if (event.hasParent && parent === EMPTY_TUPLE_HASH) return true;
  if (event.isEagle || blockHashes.length === 0 || blockSize < 1) return false;
  if (tokens.length < blockSize) return false;
  const page = Array.from({ length: blockSize }, (_, index) => tokens.at(index));
  return blockHashes.at(0) === pythonTupleHash(page);
}
