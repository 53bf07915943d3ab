/** What is made of LMCache's chunks, and what a router's index then finds of prompts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChunkFeed } from '../../../src/stores/placement/chunk-feed.ts';
import { fixedSeed } from '../../support/properties.ts';
import { BLOCK_SIZE, ChunkTrial, chunkAt, hashesOf, hashOf } from './chunk-trial.ts';

const NONE = { device: 0, host_pinned: 0, disk: 0, external: 0 };
const TOKENS = [1, 2, 3, 4, 5, 6, 7, 8];

describe('a chunk of two blocks', () => {
  test('is found from the start of the prompt, with the blocks that follow on it', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS.slice(0, 4), 4));
    feed.stored(chunkAt(TOKENS, 4));
    trial.turn();
    expect(trial.match([...TOKENS, 9, 9])).toEqual({ ...NONE, host_pinned: 4 });
    expect(trial.match([1, 2, 9, 9])).toEqual({ ...NONE, host_pinned: 1 });
    feed.removed({ hash: hashOf(TOKENS), model: 'm', salt: '', tier: 'l1' });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 2 });
    expect(trial.placements.placedBlocks).toBe(2);
  });

  test('has the hashes that routers make of a sequence, where no engine has shown others', () => {
    const trial = new ChunkTrial();
    trial.placements.feed().stored(chunkAt([1, 2], 2));
    trial.turn();
    const [first] = hashesOf([1, 2]).toBigInts();
    expect(trial.events).toEqual([`S [${first}] host_pinned`]);
  });

  test('goes on behind what the engine has on the device tier, whoever tells first', () => {
    for (const order of ['engine', 'store']) {
      const trial = new ChunkTrial();
      const feed = trial.placements.feed();
      const show = (): void => trial.engineStores(null, [101n, 102n], TOKENS.slice(0, 4));
      if (order === 'engine') show();
      feed.stored(chunkAt(TOKENS.slice(0, 4), 4));
      feed.stored(chunkAt(TOKENS, 4));
      trial.turn();
      if (order === 'store') show();
      trial.turn();
      expect(trial.match(TOKENS)).toEqual({ ...NONE, device: 2, host_pinned: 2 });
      trial.engineRemoves([102n]);
      expect(trial.match(TOKENS)).toEqual({ ...NONE, device: 1, host_pinned: 3 });
      trial.engineRemoves([101n]);
      expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 4 });
    }
  });

  test('loses a name that the engine gives to another place in its next life', () => {
    const trial = new ChunkTrial();
    trial.engineStores(null, [101n, 102n], TOKENS.slice(0, 4));
    trial.placements.feed().stored(chunkAt(TOKENS, 8));
    trial.turn();
    trial.clears();
    trial.turn();
    trial.engineStores(null, [101n], [8, 8]);
    trial.turn();
    // What stood behind the name before does not stand behind the other place.
    expect(trial.match([8, 8, 3, 4])).toEqual({ ...NONE, device: 1 });
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 4 });
  });

  test('is placed where only its parent is gone, and its parent is on the device tier', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS.slice(0, 4), 4));
    feed.removed({ hash: hashOf(TOKENS.slice(0, 4)), model: 'm', salt: '', tier: 'l1' });
    feed.stored(chunkAt(TOKENS, 4));
    trial.turn();
    expect(trial.match(TOKENS)).toEqual(NONE);
    trial.engineStores(null, [101n, 102n], TOKENS.slice(0, 4));
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, device: 2, host_pinned: 2 });
  });

  test('comes before its parent, and waits for it', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS, 4));
    feed.stored(chunkAt(TOKENS.slice(0, 6), 2));
    trial.turn();
    expect(trial.events).toEqual([]);
    expect(trial.placements.waiting).toEqual({ tokens: 0, parent: 2 });
    feed.stored(chunkAt(TOKENS.slice(0, 4), 4));
    trial.turn();
    expect(trial.placements.waiting).toEqual({ tokens: 0, parent: 0 });
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 4 });
  });

  test('is on two tiers, each by itself, and held while one of two sources says so', () => {
    const trial = new ChunkTrial();
    const one = trial.placements.feed();
    const other = trial.placements.feed();
    const gone = { hash: hashOf(TOKENS.slice(0, 4)), model: 'm', salt: '' };
    one.stored(chunkAt(TOKENS.slice(0, 4), 4));
    other.stored(chunkAt(TOKENS.slice(0, 4), 4));
    other.stored(chunkAt(TOKENS.slice(0, 4), 4, { tier: 'l2' }));
    trial.turn();
    expect(trial.events).toHaveLength(2);
    one.removed({ ...gone, tier: 'l1' });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 2 });
    other.removed({ ...gone, tier: 'l1' });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, disk: 2 });
    other.removedAll();
    trial.turn();
    expect(trial.match(TOKENS)).toEqual(NONE);
    expect(trial.index.size).toBe(0);
  });

  test('goes at the first removal, however often it was stored, and comes again', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    const chunk = chunkAt(TOKENS.slice(0, 4), 4);
    for (let count = 0; count < 2; count++) {
      feed.stored(chunk);
      feed.stored(chunk);
      trial.turn();
      expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 2 });
      feed.removed(chunk);
      trial.turn();
      expect(trial.match(TOKENS)).toEqual(NONE);
    }
  });

  test('is published again after a clear of its rank, and of no other', () => {
    const trial = new ChunkTrial({}, 2);
    trial.placements.feed().stored(chunkAt(TOKENS.slice(0, 4), 4));
    trial.turn();
    expect(trial.events).toHaveLength(2);
    trial.clears(1);
    expect(trial.match(TOKENS, null, 1)).toEqual(NONE);
    trial.turn();
    expect(trial.events).toHaveLength(3);
    for (const rank of [0, 1]) {
      expect(trial.match(TOKENS, null, rank)).toEqual({ ...NONE, host_pinned: 2 });
    }
    expect(trial.placements.placedBlocks).toBe(4);
  });

  test('with a salt is found under that salt alone', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS, 8, { salt: 'dynamo-cache-salt:tenant' }));
    feed.stored(chunkAt([9, 9], 2, { salt: 'bare' }));
    trial.turn();
    expect(trial.match(TOKENS)).toEqual(NONE);
    expect(trial.match(TOKENS, 'tenant')).toEqual({ ...NONE, host_pinned: 4 });
    expect(trial.match([9, 9], 'bare')).toEqual({ ...NONE, host_pinned: 1 });
  });

  test('whose tokens come from elsewhere waits for them, or finds them', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    const whole = chunkAt(TOKENS.slice(0, 4), 4);
    const next = chunkAt(TOKENS, 4);
    const untold = { parentHash: undefined, tokenIds: [], tokenOffset: -1 };
    feed.stored({ ...whole, ...untold });
    expect(trial.placements.waiting).toEqual({ tokens: 1, parent: 0 });
    trial.placements.learn({ ...whole, tokenOffset: 0 });
    trial.placements.learn({ ...next, tokenOffset: 4 });
    feed.stored({ ...next, ...untold });
    trial.turn();
    expect(trial.placements.waiting).toEqual({ tokens: 0, parent: 0 });
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 4 });
  });

  test('takes its parent from elsewhere where its source tells tokens and offset alone', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored({ ...chunkAt(TOKENS.slice(0, 4), 4), parentHash: undefined, tokenOffset: 0 });
    feed.stored({ ...chunkAt(TOKENS, 4), parentHash: undefined, tokenOffset: 4 });
    expect(trial.placements.waiting).toEqual({ tokens: 0, parent: 1 });
    trial.placements.learn({ ...chunkAt(TOKENS, 4), tokenOffset: 4 });
    feed.stored({ ...chunkAt(TOKENS, 4), parentHash: undefined, tokenOffset: 4 });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 4 });
  });
});

describe('of a source that tells no salt', () => {
  const chunk = chunkAt(TOKENS.slice(0, 4), 4);

  test('a chunk that is stored under one alone is not placed, whoever tells first', () => {
    for (const order of ['salt', 'store']) {
      const trial = new ChunkTrial();
      const note = (): void => trial.placements.noteSalt({ ...chunk, salt: 'tenant' }, true);
      if (order === 'salt') note();
      const feed = trial.placements.feed(true);
      feed.stored(chunk);
      trial.turn();
      if (order === 'store') note();
      trial.turn();
      expect(trial.match(TOKENS)).toEqual(NONE);
      expect(trial.placements.refused.salt).toBe(1);
      // Then without.
      trial.placements.noteSalt(chunk, true);
      trial.turn();
      expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 2 });
    }
  });

  test('a chunk is placed again when the salted copy is gone; other models and sources have no say', () => {
    const trial = new ChunkTrial();
    const blind = trial.placements.feed(true);
    blind.stored(chunk);
    trial.placements.noteSalt({ ...chunk, model: 'other', salt: 'tenant' }, true);
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 2 });
    trial.placements.noteSalt({ ...chunk, salt: 'tenant' }, true);
    trial.turn();
    expect(trial.match(TOKENS)).toEqual(NONE);
    const other = trial.placements.feed();
    other.stored({ ...chunk, tier: 'l2' });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, disk: 2 });
    trial.placements.noteSalt({ ...chunk, salt: 'tenant' }, false);
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 2 });
  });
});

describe('nothing is made of', () => {
  test.each([
    ['other_model', { model: 'other' }, TOKENS, 4],
    ['chunk_size', {}, [1, 2, 3], 3],
    ['images', {}, [1, 2, 3, 77], 4],
  ] as const)('%s', (reason, more, tokens, size) => {
    const trial = new ChunkTrial({ padTokenIds: [77] });
    const feed = trial.placements.feed();
    const chunk = { ...chunkAt(tokens, size, more), parentHash: null };
    feed.stored(chunk);
    trial.turn();
    expect(trial.placements.refused[reason]).toBe(1);
    expect(trial.events).toEqual([]);
    feed.removed(chunk);
    expect(trial.placements.chunks).toBe(0);
  });

  test('a tier that is off', () => {
    const trial = new ChunkTrial({ tiers: { l1: null, l2: 'disk' } });
    trial.placements.feed().stored(chunkAt(TOKENS, 4));
    trial.turn();
    expect([trial.events, trial.placements.chunks]).toEqual([[], 0]);
  });

  test('a hash with two meanings, nor of what follows on it', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS.slice(0, 4), 4));
    feed.stored(chunkAt(TOKENS, 4));
    trial.turn();
    feed.stored({ ...chunkAt(TOKENS.slice(0, 4), 4), tokenIds: [1, 2, 3, 5] });
    trial.turn();
    expect(trial.placements.refused.conflict).toBe(1);
    expect(trial.match(TOKENS)).toEqual(NONE);
    expect(trial.index.size).toBe(0);
  });

  test('what a removal of another model names', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS, 8));
    feed.removed({ hash: hashOf(TOKENS), model: 'other', salt: '', tier: 'l1' });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 4 });
  });

  test('the end of a last chunk that fills no block, and what would follow on it', () => {
    const trial = new ChunkTrial();
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS.slice(0, 4), 4));
    feed.stored(chunkAt(TOKENS.slice(0, 7), 3));
    feed.stored({
      ...chunkAt([...TOKENS.slice(0, 7), 8, 9], 2),
      parentHash: hashOf(TOKENS.slice(0, 7)),
    });
    trial.turn();
    expect(trial.match(TOKENS)).toEqual({ ...NONE, host_pinned: 3 });
    expect(trial.placements.refused.chunk_size).toBe(1);
  });
});

test('blocks beyond the bound are refused while all are held; unheld chunks give way', () => {
  const trial = new ChunkTrial({ maxBlocks: 4 });
  const feed = trial.placements.feed();
  const others = [
    [11, 12, 13, 14],
    [21, 22, 23, 24],
    [31, 32, 33, 34],
  ];
  for (const tokens of others) feed.stored(chunkAt(tokens, 4));
  trial.turn();
  expect(trial.placements.refused.no_room).toBe(1);
  expect(trial.placements.placedBlocks).toBe(4);
  feed.removed(chunkAt(others[0] as number[], 4));
  trial.turn();
  feed.removed(chunkAt(others[2] as number[], 4));
  feed.stored(chunkAt(others[2] as number[], 4));
  trial.turn();
  expect(trial.placements.refused.no_room).toBe(1);
  expect(trial.match(others[2] as number[])).toEqual({ ...NONE, host_pinned: 2 });
  expect(trial.placements.forgotten.chunks).toBe(1);
});

test('tokens that nobody has stored a chunk of go, the oldest first', () => {
  const trial = new ChunkTrial();
  const tokenIds = Array.from({ length: 65_536 }, (_, at) => at);
  const told = (at: number): Parameters<ChunkTrial['placements']['learn']>[0] => {
    return { hash: Buffer.from(`told ${at}`), parentHash: null, tokenIds, tokenOffset: 0 };
  };
  for (let at = 0; at < 260; at++) trial.placements.learn(told(at));
  expect(trial.placements.forgotten.tokens).toBe(4);
  const feed = trial.placements.feed();
  for (const at of [3, 4]) {
    feed.stored({ ...told(at), tokenIds: [], model: 'm', salt: '', tier: 'l1' });
  }
  expect(trial.placements.waiting.tokens).toBe(1);
});

test('any number of chunks may wait for one, and follow on one that means nothing any more', () => {
  const count = 150_000;
  const trial = new ChunkTrial({ maxBlocks: 2 * count });
  const feed = trial.placements.feed();
  const parentHash = hashOf([1, 2]);
  for (let at = 0; at < count; at++) {
    const hash = Buffer.from(`child ${at}`);
    feed.stored({ ...chunkAt([1, 2, at, at], 2), hash, parentHash });
  }
  expect(trial.placements.waiting.parent).toBe(count);
  feed.stored(chunkAt([1, 2], 2));
  trial.turn();
  expect(trial.placements.waiting.parent).toBe(0);
  feed.stored({ ...chunkAt([1, 2], 2), tokenIds: [3, 4] });
  trial.turn();
  expect([trial.placements.placedBlocks, trial.placements.refused.conflict]).toEqual([0, 1]);
});

describe('many chunks hold nobody up', () => {
  const count = 5000;
  const PORTION = 1024;

  function startedTrial(ranks: number): { trial: ChunkTrial; feed: ChunkFeed } {
    const trial = new ChunkTrial({}, ranks);
    const feed = trial.placements.feed();
    for (let at = 0; at < count; at++) {
      const hash = Buffer.from(`child ${at}`);
      feed.stored({ ...chunkAt([1, 2, at, at], 2), hash, parentHash: hashOf([1, 2]) });
    }
    return { trial, feed };
  }

  test('that have waited for one chunk get their places a portion at a time', () => {
    const { trial, feed } = startedTrial(1);
    feed.stored(chunkAt([1, 2], 2));
    let waiting = trial.placements.waiting.parent;
    expect(waiting).toBe(count);
    let portions = 0;
    for (; trial.placements.waiting.parent > 0; portions++) {
      trial.portion();
      expect(waiting - trial.placements.waiting.parent).toBeLessThanOrEqual(PORTION);
      waiting = trial.placements.waiting.parent;
    }
    expect(portions).toBeLessThan(20);
    trial.turn();
    expect(trial.placements.placedBlocks).toBe(count + 1);
  });

  test('that are published again after a clear are so a portion at a time, behind what came meanwhile or not', () => {
    const { trial, feed } = startedTrial(2);
    feed.stored(chunkAt([1, 2], 2));
    trial.turn();
    expect(trial.placements.placedBlocks).toBe(2 * (count + 1));
    trial.clears(1);
    expect(trial.placements.placedBlocks).toBe(count + 1);
    for (const at of [0, count - 1]) {
      feed.removed({ ...chunkAt([1, 2, at, at], 2), hash: Buffer.from(`child ${at}`) });
    }
    trial.portion();
    trial.clears(1);
    trial.events.splice(0);
    for (let before = 0; trial.hasPortions; before = trial.events.length) {
      trial.portion();
      expect(trial.events.length - before).toBeLessThanOrEqual(PORTION);
    }
    expect(trial.placements.placedBlocks).toBe(2 * (count - 1));
    expect(trial.match([1, 2, 0, 0], null, 1)).toEqual({ ...NONE, host_pinned: 1 });
    expect(trial.match([1, 2, 7, 7], null, 1)).toEqual({ ...NONE, host_pinned: 2 });
  });

  test('one that gives way while its turn is to come is nobody that follows on its parent', () => {
    const trial = new ChunkTrial({ maxBlocks: 2 });
    const feed = trial.placements.feed();
    feed.stored(chunkAt(TOKENS.slice(0, 4), 2));
    feed.stored(chunkAt(TOKENS.slice(0, 2), 2));
    feed.removed(chunkAt(TOKENS.slice(0, 4), 2));
    feed.removed(chunkAt(TOKENS.slice(0, 2), 2));
    trial.portion();
    feed.stored(chunkAt([7, 7], 2));
    trial.turn();
    feed.stored(chunkAt([8, 8], 2));
    trial.turn();
    expect([trial.placements.placedBlocks, trial.placements.chunks]).toEqual([2, 2]);
    expect(trial.match([7, 7])).toEqual({ ...NONE, host_pinned: 1 });
  });
});

const step = fc.record({
  kind: fc.constantFrom(
    'store',
    'store',
    'store',
    'drop',
    'show',
    'show',
    'forget',
    'clear',
    'turn',
    'portion',
  ),
  path: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 3 }),
});

/** A chunk of two blocks for each step of the path. */
function tokensOf(path: readonly number[]): number[] {
  return path.flatMap((way) => [way, 10 + way, 20 + way, 30 + way]);
}

type Namer = (path: readonly number[], life: number) => bigint[];

/** How an engine calls the blocks of a path; another name in each of its lives. */
const namesOf: Namer = (path, life) =>
  path.flatMap((_, depth) => {
    const name = BigInt(life * 1_000_000 + Number(path.slice(0, depth + 1).join('')) * 10 + 1);
    return [name, name + 1n];
  });

/** An engine whose lives have the same few names, each time for other blocks. */
const reusedNamesOf: Namer = (path, life) =>
  path.flatMap((_, depth) => {
    const place = path.slice(0, depth + 1).reduce((sum, way) => sum * 2 + way, 0);
    return [0, 1].map((block) => BigInt(1 + ((place * 2 + block + life * 5) % 30)));
  });

test.each([
  ['of its own', namesOf],
  ['of another block before', reusedNamesOf],
])(
  'whatever comes in whatever order, a router finds the device prefix and the held blocks behind it, under names %s',
  (_, names) => {
    const ran = { both: 0, host: 0 };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const trial = new ChunkTrial();
        const feed = trial.placements.feed();
        const held = new Set<string>();
        const told = new Set<string>();
        let life = 1;
        for (const { kind, path } of steps) {
          const tokens = tokensOf(path);
          const name = path.join();
          if (kind === 'store') {
            feed.stored(chunkAt(tokens, 4));
            held.add(name);
            told.add(name);
          } else if (kind === 'drop') {
            feed.removed(chunkAt(tokens, 4));
            held.delete(name);
          } else if (kind === 'show') {
            trial.engineStores(null, names(path, life), tokens);
          } else if (kind === 'forget') {
            trial.engineRemoves(names(path, life).slice(-1));
          } else if (kind === 'clear') {
            life++;
            trial.clears();
          } else if (kind === 'portion') {
            trial.portion();
          } else {
            trial.turn();
          }
        }
        trial.turn();
        for (const path of fc.sample(step, { numRuns: 10, seed: 1 }).map((one) => one.path)) {
          const found = trial.match(tokensOf(path));
          // Where a chunk stands is known with all before it, held or not.
          const isHeldAt = (block: number): boolean => {
            const upTo = path.slice(0, Math.floor(block / 2) + 1);
            const isKnown = upTo.every((_, depth) => told.has(upTo.slice(0, depth + 1).join()));
            return isKnown && held.has(upTo.join());
          };
          let end = found.device;
          while (end < path.length * 2 && isHeldAt(end)) end++;
          expect(found).toEqual({ ...NONE, device: found.device, host_pinned: end - found.device });
          if (found.host_pinned > 0) ran[found.device > 0 ? 'both' : 'host']++;
        }
      }),
      { ...fixedSeed, numRuns: 300 },
    );
    expect(Math.min(ran.both, ran.host)).toBeGreaterThan(20);
    expect(BLOCK_SIZE).toBe(2);
  },
);
