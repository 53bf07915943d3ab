/**
 * Image data of one block, as engines send it and routers expect it back.
 *
 * mmHashes  one u64 an object, in the order given.
 * offsets   for each object its [start, end, start, end, …] token offsets; they play no part in hashes.
 */
export interface MmInfo {
  readonly mmHashes: BigUint64Array;
  readonly offsets: readonly BigUint64Array[];
}
