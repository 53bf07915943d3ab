/** Which blocks a store holds, and what many of them at once cost a turn of the event loop. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyPatternOf, parsedHashOf } from '../../../src/engines/mooncake/key-patterns.ts';
import { NO_ATTRIBUTES } from '../../../src/stores/objects/attribute-sets.ts';
import { ObjectState } from '../../../src/stores/objects/object-state.ts';
import { RankPlacements } from '../../../src/stores/placement/rank-placements.ts';
import { StorePlacements } from '../../../src/stores/placement/store-placements.ts';
import { stored } from '../../support/placements.ts';
import { fixedSeed } from '../../support/properties.ts';

const pattern = keyPatternOf('(?<hash>[0-9a-f]+)/[a-z]');

class Placed {
  parsed = 0;
  /** Blocks of each batch, and a 0 where a turn ends. */
  readonly batches: number[] = [];
  readonly placements: StorePlacements;
  readonly rank: RankPlacements;
  readonly state: ObjectState;
  #deferred: (() => void)[] = [];

  constructor() {
    this.placements = new StorePlacements({
      source: 'mooncake',
      patternName: pattern.name,
      parse: (key) => {
        this.parsed++;
        return pattern.parse(key);
      },
      hashOf: parsedHashOf,
    });
    this.rank = new RankPlacements({
      dpRank: 0,
      storageTier: 'external',
      maxBlocks: 10_000,
      isHeld: (low, high) => this.placements.isHeld(low, high),
      nowMs: () => 0,
      defer: (callback) => this.#deferred.push(callback),
    });
    this.placements.ranks = [this.rank];
    this.rank.placements$.subscribe((batch) => this.batches.push(batch.length));
    this.state = new ObjectState({
      maxObjects: 100_000,
      maxKeyBytes: 1 << 24,
      maxScopes: 2,
      maxAttributeSets: 10,
      onChange: (change) => this.placements.take(change),
    });
  }

  store(key: string, tenantId = 'default'): void {
    this.state.stored(at(tenantId), Buffer.from(key), 'cpu', NO_ATTRIBUTES);
  }

  remove(key: string, tenantId = 'default'): void {
    this.state.removed(at(tenantId), Buffer.from(key), 'cpu');
  }

  turn(): void {
    for (const callback of this.#deferred.splice(0)) callback();
    this.batches.push(0);
  }

  turns(): void {
    while (this.#deferred.length > 0) this.turn();
  }
}

function at(tenantId: string): { source: string; backendId: string; tenantId: string } {
  return { source: 'mooncake', backendId: 'b', tenantId };
}

const step = fc.tuple(
  fc.constantFrom('store', 'store', 'store', 'remove', 'remove', 'clear'),
  fc.integer({ min: 1, max: 6 }),
  fc.constantFrom('k', 'v'),
  fc.constantFrom('default', 't1', 't2'),
);

test('a block is held while an object of it is, in any tenant', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const placed = new Placed();
      for (const [kind, hash, part, tenant] of steps) {
        const key = `${hash.toString(16)}/${part}`;
        if (kind === 'store') placed.store(key, tenant);
        else if (kind === 'remove') placed.remove(key, tenant);
        else placed.state.cleared(at(tenant));
        const held = new Set<string>();
        for (const scope of placed.state.scopes()) {
          for (const each of scope.table.keys()) held.add(Buffer.from(each).toString().slice(0, 1));
        }
        for (let low = 1; low <= 6; low++) {
          expect(placed.placements.isHeld(low, 0)).toBe(held.has(String(low)));
        }
        expect(placed.placements.heldHashes).toBe(held.size);
      }
    }),
    { ...fixedSeed, numRuns: 100 },
  );
});

test('a clear looks into no key again, and the blocks leave over several turns', () => {
  const placed = new Placed();
  const hashes = Array.from({ length: 3000 }, (_, index) => BigInt(index + 1));
  placed.rank.observe([stored(null, hashes)]);
  for (const hash of hashes) placed.store(`${hash.toString(16)}/k`);
  placed.turns();
  expect(placed.rank.known.placedCount).toBe(3000);
  expect(placed.batches).toEqual([1024, 1024, 0, 952, 0]);
  const before = placed.parsed;
  placed.batches.length = 0;
  placed.state.cleared(at('default'));
  expect(placed.parsed).toBe(before);
  placed.turns();
  expect(placed.rank.known.placedCount).toBe(0);
  expect(placed.batches).toEqual([1024, 1024, 0, 952, 0]);
});

test('many blocks that change nothing do not fill one turn either', () => {
  const placed = new Placed();
  for (let hash = 1; hash <= 50_000; hash++) placed.store(`${hash.toString(16)}/k`);
  placed.turns();
  expect(placed.batches.length).toBeGreaterThan(1);
  expect(placed.batches.every((blocks) => blocks === 0)).toBe(true);
});

test('what waits for its turn is bounded by what comes in one', () => {
  const placed = new Placed();
  let waiting = 0;
  for (let turn = 0; turn < 300; turn++) {
    for (let hash = 1; hash <= 10_000; hash++) placed.rank.touch(hash, 0);
    placed.turn();
    waiting = Math.max(waiting, placed.rank.waitingHashes);
  }
  expect(waiting).toBeLessThan(64 * 10_000);
});
