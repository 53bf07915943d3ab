import { describe, expect, test } from 'vitest';
import { arena } from '../../src/kernel/arena.ts';
import { kernelBytesTaken } from '../../src/kernel/kernel.ts';
import { DeviceTree, EdgeTier, type RouterTier } from '../../src/kernel/router-tiers.ts';
import { U64List } from '../../src/kernel/u64-list.ts';
import { dumpOfTier, rowsOf } from '../support/held-blocks.ts';
import { fixedSeed } from '../support/properties.ts';
import { seededRandom, sortedRows } from '../support/router-streams.ts';

const MAX_BLOCKS = 1e7;

function store(
  tier: RouterTier,
  parent: bigint | null,
  hashes: readonly bigint[],
  { tokens = hashes, maxBlocks = MAX_BLOCKS } = {},
): number {
  arena.reset();
  const event = {
    blockHashes: U64List.of(...hashes),
    hasParent: parent !== null,
    parentLow: Number((parent ?? 0n) & 0xffff_ffffn),
    parentHigh: Number((parent ?? 0n) >> 32n),
    dpRank: 0,
  };
  return tier.store(event, U64List.of(...tokens), maxBlocks);
}

function remove(tier: RouterTier, ...hashes: readonly bigint[]): void {
  arena.reset();
  tier.remove(U64List.of(...hashes));
}

/** `parent>hash` of each block held, sorted. */
function held(tier: RouterTier): string[] {
  const rows = rowsOf(dumpOfTier({ dpRank: 0, storageTier: 'device', tier }));
  return sortedRows(rows);
}

function hashesOf(tier: RouterTier): bigint[] {
  const hashes = held(tier).map((row) => BigInt(row.split(' ')[2] ?? ''));
  return hashes.sort((a, b) => (a < b ? -1 : 1));
}

/** Blocks by their place, as a path of tokens; blocks go with all below them, the deepest first. */
class Places {
  readonly hashes = new Map<string, bigint>();
  readonly #random: () => number;
  readonly #hashOf = new Map<string, bigint>();

  constructor(random: () => number) {
    this.#random = random;
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** A chain from the root; a place has one hash for good. */
  grow(): { hashes: bigint[]; tokens: bigint[] } {
    const tokens = Array.from({ length: 1 + this.below(8) }, () => BigInt(1 + this.below(3)));
    const hashes = tokens.map((_, index) => {
      const place = tokens.slice(0, index + 1).join();
      const hash = this.#hashOf.get(place) ?? BigInt(1000 + this.#hashOf.size);
      this.#hashOf.set(place, hash);
      this.hashes.set(place, hash);
      return hash;
    });
    return { hashes, tokens };
  }

  cut(): bigint[] {
    const top = [...this.hashes.keys()][this.below(this.hashes.size)] ?? '';
    const gone = [...this.hashes.keys()].filter((one) => `${one},`.startsWith(`${top},`));
    gone.sort((a, b) => b.length - a.length);
    return gone.map((place) => {
      const hash = this.hashes.get(place) as bigint;
      this.hashes.delete(place);
      return hash;
    });
  }

  rows(): string[] {
    const rows = [...this.hashes].map(([place, hash]) => {
      const tokens = place.split(',');
      const above = tokens.slice(0, -1).join();
      return ['device', this.hashes.get(above)?.toString() ?? null, `${hash}`, tokens.at(-1)];
    });
    return rows.map((row) => row.join(' ')).sort();
  }
}

describe('DeviceTree', () => {
  test.each([
    [0, '11'],
    [100, '1'],
  ])('that keeps %d removed blocks has a place under hash %s', (retained, hash) => {
    const tree = new DeviceTree(retained);
    store(tree, null, [1n]);
    remove(tree, 1n);
    store(tree, null, [11n], { tokens: [1n] });
    expect(held(tree)).toEqual([`device  ${hash} 1`]);
    tree.free();
  });

  test('that forgets what is removed at once holds the same, and keeps no more', () => {
    const random = seededRandom(fixedSeed.seed);
    for (let run = 0; run < fixedSeed.numRuns; run++) {
      const tree = new DeviceTree(0);
      const places = new Places(random);
      for (let step = 0; step < 60; step++) {
        if (places.below(3) > 0) {
          const { hashes, tokens } = places.grow();
          expect(store(tree, null, hashes, { tokens })).toBe(0);
        } else {
          remove(tree, ...places.cut());
        }
        expect(held(tree)).toEqual(places.rows());
        expect(tree.size).toBe(places.hashes.size);
        expect(tree.keptBlocks).toBeLessThanOrEqual(tree.size * 1.25);
      }
      tree.free();
    }
  });

  test('keeps at most so many blocks that are not held, also across clears', () => {
    const tree = new DeviceTree(100);
    for (let round = 0n; round < 40n; round++) {
      const first = round * 100n;
      const chain = Array.from({ length: 60 }, (_, block) => first + BigInt(block));
      store(tree, null, chain);
      expect(tree.keptBlocks).toBeLessThanOrEqual(160);
      if (round % 3n === 0n) tree.clear();
      else remove(tree, ...chain.reverse());
      expect(tree.size).toBe(0);
      expect(tree.keptBlocks).toBeLessThanOrEqual(100);
    }
    tree.free();
  });

  test.each([
    ['new blocks', null, [4n, 5n, 6n], 2, [1n, 2n, 3n, 4n]],
    ['blocks it has', null, [1n, 2n, 3n], 0, [1n, 2n, 3n]],
    ['blocks it has and more', null, [1n, 2n, 7n, 8n], 1, [1n, 2n, 3n, 7n]],
  ])('of at most 4 blocks is given %s', (_, parent, hashes, refused, left) => {
    const tree = new DeviceTree();
    store(tree, null, [1n, 2n, 3n]);
    expect(store(tree, parent, hashes, { maxBlocks: 4 })).toBe(refused);
    expect(hashesOf(tree)).toEqual(left);
    tree.free();
  });

  test('gives its memory back', () => {
    const grow = (): void => {
      const tree = new DeviceTree();
      for (let first = 0n; first < 200_000n; first += 1000n) {
        store(
          tree,
          null,
          Array.from({ length: 1000 }, (_, block) => first + BigInt(block)),
        );
        store(tree, first + 499n, [first + 1_000_000n]);
        if (first % 3n === 0n) remove(tree, first + 700n);
      }
      expect(tree.size).toBeGreaterThan(150_000);
      tree.free();
    };
    // Large blocks that are given back are cut up in the rounds after.
    for (let round = 0; round < 5; round++) grow();
    const taken = kernelBytesTaken();
    for (let round = 0; round < 10; round++) grow();
    expect(kernelBytesTaken()).toBe(taken);
  });
});

describe('EdgeTier', () => {
  test('of at most 4 blocks leaves out what is over', () => {
    const tier = new EdgeTier();
    expect(store(tier, null, [1n, 2n, 3n])).toBe(0);
    expect(store(tier, 9n, [4n, 5n, 6n], { maxBlocks: 4 })).toBe(2);
    expect(tier.size).toBe(4);
    tier.free();
  });

  test('gives records of removed blocks out again', () => {
    const tier = new EdgeTier();
    const round = (): void => {
      for (let first = 1n; first < 100_000n; first += 1000n) {
        const hashes = Array.from({ length: 1000 }, (_, block) => first + BigInt(block));
        store(tier, null, hashes);
        remove(tier, ...hashes);
      }
      expect(tier.size).toBe(0);
    };
    round();
    const taken = kernelBytesTaken();
    for (let again = 0; again < 10; again++) round();
    expect(kernelBytesTaken()).toBe(taken);
    tier.free();
  });
});

test.each([
  ['the device tier', () => new DeviceTree()],
  ['a lower tier', () => new EdgeTier()],
])('match() on %s counts blocks one after the other and says where to go on', (_, make) => {
  const tier = make();
  store(tier, null, [1n, 2n, 3n, 4n], { tokens: [11n, 12n, 13n, 14n] });
  store(tier, 2n, [5n], { tokens: [15n] });
  arena.reset();
  const cursor = { isRoot: true, low: 0, high: 0 };
  expect(tier.match(U64List.of(11n, 12n, 15n, 16n), 0, cursor)).toBe(3);
  expect(cursor).toEqual({ isRoot: false, low: 5, high: 0 });
  const untouched = { isRoot: true, low: 0, high: 0 };
  expect(tier.match(U64List.of(12n), 0, untouched)).toBe(0);
  expect(untouched.isRoot).toBe(true);
  remove(tier, 3n);
  expect(tier.match(U64List.of(11n, 12n, 13n, 14n), 0, untouched)).toBe(2);
  tier.free();
});
