/** What an engine's stream has shown of its blocks: kept packed, beside a plain map. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KnownBlocks, type ShownBlock } from '../../../src/stores/placement/known-blocks.ts';
import { fixedSeed } from '../../support/properties.ts';

function block(hash: number, tokens = hash + 1, parent: number | null = null): ShownBlock {
  return {
    hashLow: hash,
    hashHigh: hash >> 3,
    tokensLow: tokens,
    tokensHigh: 0,
    hasParent: parent !== null,
    parentLow: parent ?? 0,
    parentHigh: 0,
  };
}

const find = (known: KnownBlocks, hash: number): number => known.find(hash, hash >> 3);

test('a block is shown once; other tokens or another parent make it ambiguous for good', () => {
  const known = new KnownBlocks(100);
  expect(known.show(block(7, 8, 3))).toBe(true);
  expect(known.show(block(7, 8, 3))).toBe(false);
  const entry = find(known, 7);
  expect(known.block(entry)).toEqual(block(7, 8, 3));
  expect(known.canBePlaced(entry)).toBe(true);
  expect(known.show(block(7, 9, 3))).toBe(true);
  expect(known.canBePlaced(entry)).toBe(false);
  expect(known.show(block(7, 8, 3))).toBe(false);
  known.show(block(5, 6, 1));
  expect(known.show(block(5, 6))).toBe(true);
});

test('above the bound the oldest gives way, but never one that is placed', () => {
  const known = new KnownBlocks(3);
  for (const hash of [1, 2, 3]) known.show(block(hash));
  known.setPlaced(find(known, 1), true);
  known.show(block(4));
  expect([1, 2, 3, 4].map((hash) => find(known, hash) >= 0)).toEqual([true, false, true, true]);
  for (const hash of [3, 4]) known.setPlaced(find(known, hash), true);
  expect(known.show(block(5))).toBe(false);
  expect([known.unkept, known.placedCount, known.size]).toEqual([1, 3, 3]);
});

test('those placed are told of in the order in which they were shown', () => {
  const known = new KnownBlocks(1000);
  for (let hash = 1; hash <= 500; hash++) known.show(block(hash * 977));
  for (let hash = 500; hash >= 1; hash -= 5) known.setPlaced(find(known, hash * 977), true);
  const told: number[] = [];
  known.unplaceAll((low) => told.push(low / 977));
  expect(told).toEqual([...told].sort((one, other) => one - other));
  expect([told.length, known.placedCount]).toEqual([100, 0]);
});

test('any history agrees with a plain map', () => {
  const hash = fc.integer({ min: -3000, max: 3000 });
  fc.assert(
    fc.property(fc.array(hash, { minLength: 1000, maxLength: 4000 }), (hashes) => {
      const maxBlocks = 1500;
      const known = new KnownBlocks(maxBlocks);
      const plain = new Map<number, true>();
      for (const one of hashes) {
        known.show(block(one));
        if (plain.has(one)) continue;
        const [oldest] = plain.keys();
        if (plain.size === maxBlocks && oldest !== undefined) plain.delete(oldest);
        plain.set(one, true);
      }
      expect(known.size).toBe(plain.size);
      for (let one = -3000; one <= 3000; one++) {
        const entry = find(known, one);
        expect([one, entry >= 0]).toEqual([one, plain.has(one)]);
        if (entry >= 0) expect(known.block(entry)).toEqual(block(one));
      }
    }),
    { ...fixedSeed, numRuns: 10 },
  );
});
