/** A chunk that means nothing any more takes along what follows on it: in portions, and all of it. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ChunkFeed } from '../../../src/stores/placement/chunk-feed.ts';
import { fixedSeed } from '../../support/properties.ts';
import { ChunkTrial, chunkAt, hashOf } from './chunk-trial.ts';

const ROOT = [1, 1];
const MAX_PORTION_CHUNKS = 1100;

class Family {
  readonly chunks: ChunkTrial = new ChunkTrial();
  readonly feed: ChunkFeed = this.chunks.placements.feed();

  /** Chunk `at`, behind the root or, where they are given, behind these. */
  store(at: number, behind: readonly number[] = [], tier: 'l1' | 'l2' = 'l1'): void {
    const before = behind.flatMap((one) => [one, one]);
    this.feed.stored(chunkAt([...ROOT, ...before, at, at], 2, { tier }));
  }

  conflict(): void {
    this.feed.stored({ ...chunkAt(ROOT, 2), tokenIds: [2, 2] });
  }

  get refused(): number {
    return [...this.chunks.placements.all()].filter(({ isRefused }) => isRefused).length;
  }
}

test('very many that follow on a chunk that conflicts go in portions, with what comes behind them meanwhile', () => {
  const family = new Family();
  family.feed.stored(chunkAt(ROOT, 2));
  for (let at = 10; at < 4010; at++) family.store(at);
  family.chunks.turn();
  expect(family.chunks.placements.placedBlocks).toBe(4001);
  family.conflict();
  expect(family.refused).toBe(1);
  family.store(5000, [10]);
  family.store(5001, [4009]);
  while (family.chunks.hasPortions) {
    const before = family.refused;
    family.chunks.portion();
    expect(family.refused - before).toBeLessThan(MAX_PORTION_CHUNKS);
  }
  expect(family.refused).toBeGreaterThan(4000);
  expect(family.chunks.placements.placedBlocks).toBe(0);
  const { placements } = family.chunks;
  expect([placements.waiting.tokens, placements.refused.conflict]).toEqual([0, 1]);
});

const step = fc.record({
  at: fc.integer({ min: 10, max: 40 }),
  behind: fc.array(fc.integer({ min: 10, max: 20 }), { maxLength: 2 }),
  tier: fc.constantFrom('l1' as const, 'l2' as const),
  isGone: fc.constantFrom(false, false, true),
  portions: fc.nat(2),
});

test('whatever is told between portions, nothing that follows on it stays at the routers', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 30 }),
      fc.array(step, { maxLength: 30 }),
      (before, after) => {
        const family = new Family();
        family.feed.stored(chunkAt(ROOT, 2));
        for (let at = 1000; at < 2500; at++) family.store(at);
        for (const { at, behind, tier } of before) family.store(at, behind, tier);
        family.chunks.turn();
        family.conflict();
        for (const { at, behind, tier, isGone, portions } of after) {
          const tokens = [...ROOT, ...[...behind, at].flatMap((one) => [one, one])];
          if (isGone) family.feed.removed({ hash: hashOf(tokens), model: 'm', salt: '', tier });
          else family.store(at, behind, tier);
          for (let done = 0; done < portions; done++) family.chunks.portion();
        }
        family.chunks.turn();
        expect(family.chunks.placements.placedBlocks).toBe(0);
      },
    ),
    { ...fixedSeed, numRuns: 30 },
  );
});
