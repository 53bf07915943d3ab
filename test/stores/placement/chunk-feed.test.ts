/** A source withdraws all that it has said of very many chunks: in portions, and as if it had been at once. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ChunkFeed } from '../../../src/stores/placement/chunk-feed.ts';
import type { ChunkPlacementsOptions } from '../../../src/stores/placement/chunk-placements.ts';
import { fixedSeed } from '../../support/properties.ts';
import { ChunkTrial, chunkAt, hashOf } from './chunk-trial.ts';

const CHUNKS = 600;
const MAX_PORTION_CHUNKS = 300;

class Feeds {
  readonly chunks: ChunkTrial;
  readonly feeds: readonly ChunkFeed[];

  constructor(options: Partial<ChunkPlacementsOptions> = {}) {
    this.chunks = new ChunkTrial(options);
    const { placements } = this.chunks;
    this.feeds = [placements.feed(), placements.feed(true)];
  }

  store(feed: number, from: number, end: number, tier: 'l1' | 'l2' = 'l1', tokens = 2): void {
    for (let at = from; at < end; at++) {
      const chunk = chunkAt([at, at], 2, { tier });
      this.feeds[feed]?.stored({ ...chunk, tokenIds: chunk.tokenIds.slice(0, tokens) });
    }
  }

  remove(feed: number, from: number, end: number, tier: 'l1' | 'l2'): void {
    for (let at = from; at < end; at++) {
      this.feeds[feed]?.removed({ hash: hashOf([at, at]), model: 'm', salt: '', tier });
    }
  }

  shown(): object {
    const { placedBlocks, waiting } = this.chunks.placements;
    const found = Array.from({ length: CHUNKS }, (_, at) => {
      const { host_pinned, disk } = this.chunks.match([at, at]);
      return `${host_pinned}${disk}`;
    });
    return { found, placedBlocks, waiting };
  }
}

test('very many chunks are withdrawn in portions, but not what is stored meanwhile', () => {
  const trial = new Feeds();
  const [feed] = trial.feeds;
  const { placements } = trial.chunks;
  trial.store(0, 0, 2000, 'l1', 0);
  feed?.removedAll();
  expect([placements.waiting.tokens, feed?.isWithdrawing]).toEqual([2000, true]);
  trial.chunks.portion();
  expect(placements.waiting.tokens).toBeGreaterThan(2000 - MAX_PORTION_CHUNKS);
  trial.store(0, 0, 10, 'l1', 0);
  trial.store(0, 1990, 2005, 'l1', 0);
  while (trial.chunks.hasPortions) {
    const before = placements.waiting.tokens;
    trial.chunks.portion();
    expect(before - placements.waiting.tokens).toBeLessThan(MAX_PORTION_CHUNKS);
  }
  expect([placements.waiting.tokens, feed?.isWithdrawing]).toEqual([25, false]);
});

test.each([
  ['all', false],
  ['what is not held by then', true],
])(
  'a chunk without room for its tokens that comes again before %s is withdrawn gets another try',
  (_, isHeld) => {
    const trial = new Feeds({ maxBlocks: 4 });
    const large = chunkAt([9, 9, 9, 9, 9, 9], 6);
    trial.store(0, 0, 3);
    trial.feeds[0]?.stored(large);
    expect(trial.chunks.placements.refused.no_room).toBe(1);
    trial.remove(0, 0, 3, 'l1');
    trial.chunks.turn();
    trial.feeds[0]?.removedUnless(() => isHeld);
    trial.feeds[0]?.stored({ ...large, tokenOffset: 0 });
    trial.chunks.turn();
    expect(trial.chunks.match([9, 9, 9, 9, 9, 9]).host_pinned).toBe(3);
  },
);

test('a stop in the middle leaves nothing to be done', () => {
  const trial = new Feeds();
  const [feed] = trial.feeds;
  trial.store(0, 0, 2000, 'l1', 0);
  feed?.removedAll();
  trial.chunks.portion();
  const { tokens } = trial.chunks.placements.waiting;
  feed?.stop();
  feed?.removedAll();
  trial.chunks.turn();
  expect([trial.chunks.placements.waiting.tokens, feed?.isWithdrawing]).toEqual([tokens, false]);
});

const step = fc.record({
  act: fc.constantFrom('store', 'store', 'remove', 'removeAll'),
  feed: fc.constantFrom(0, 0, 1),
  range: fc.tuple(fc.nat(CHUNKS), fc.nat(CHUNKS)),
  tier: fc.constantFrom('l1' as const, 'l2' as const),
  tokens: fc.constantFrom(0, 2, 2),
  portions: fc.nat(2),
});

test('whatever is told between portions, in the end all is as if it had been withdrawn at once', () => {
  let behind = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 6, maxLength: 16 }), (steps) => {
      const inPortions = new Feeds();
      const atOnce = new Feeds();
      for (const { act, feed, range, tier, tokens, portions } of steps) {
        const [from, end] = [Math.min(...range), Math.max(...range)];
        for (const one of [inPortions, atOnce]) {
          if (act === 'store') one.store(feed, from, end, tier, tokens);
          else if (act === 'remove') one.remove(feed, from, end, tier);
          else one.feeds[feed]?.removedAll();
        }
        atOnce.chunks.turn();
        for (let done = 0; done < portions; done++) inPortions.chunks.portion();
        if (inPortions.feeds.some(({ isWithdrawing }) => isWithdrawing)) behind++;
      }
      inPortions.chunks.turn();
      expect(inPortions.shown()).toEqual(atOnce.shown());
    }),
    { ...fixedSeed, numRuns: 60 },
  );
  expect(behind).toBeGreaterThan(40);
});
