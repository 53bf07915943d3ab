/**
 * XXH3-64 over bytes, seeded. A u64 is a pair of words here.
 *
 * Source   xxHash 0.8, XXH3_64bits_withSeed; constants and vectors checked against Dynamo 1.6.1.
 */
import { arena } from './arena.ts';
import { resultAddress, views, wasm } from './kernel.ts';

export interface U64Words {
  readonly low: number;
  readonly high: number;
}

export function addU64(a: U64Words, b: U64Words): U64Words {
  const low = a.low + b.low;
  return { low: low >>> 0, high: (a.high + b.high + (low > 0xffff_ffff ? 1 : 0)) >>> 0 };
}

/** Digest of UTF-8 text or bytes. Allocates in the arena; cache what repeats. */
export function digest(input: string | Uint8Array, seedLow: number): U64Words {
  const bytes = typeof input === 'string' ? Buffer.from(input, 'utf8') : input;
  const address = arena.take(bytes.length);
  views.u8.set(bytes, address);
  return digestAt(address, bytes.length, { low: seedLow, high: 0 });
}

/** Digest of `length` bytes of kernel memory. */
export function digestAt(address: number, length: number, seed: U64Words): U64Words {
  wasm.xxh3(address, length, seed.low, seed.high, resultAddress);
  const word = resultAddress >>> 2;
  return { low: views.u32[word] as number, high: views.u32[word + 1] as number };
}
