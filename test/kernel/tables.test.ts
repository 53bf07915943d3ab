import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arena } from '../../src/kernel/arena.ts';
import { NamespaceTable, RefcountTable } from '../../src/kernel/tables.ts';
import { U64List } from '../../src/kernel/u64-list.ts';
import { fixedSeed } from '../support/properties.ts';

/** Few different keys, so that they meet; some near each other, as small integers are. */
const key = fc.oneof(
  fc.bigInt(0n, 40n),
  fc.constantFrom(2n ** 64n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 32n, 0xffff_ffffn),
);
const keys = fc.array(key, { maxLength: 30 });
const step = fc.record({ store: fc.boolean(), keys });

function holds(table: RefcountTable, hash: bigint): boolean {
  return table.has(Number(hash & 0xffff_ffffn), Number(hash >> 32n));
}

test('RefcountTable counts as a Map does, over any history', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = new RefcountTable();
      const model = new Map<bigint, number>();
      for (const { store, keys: hashes } of steps) {
        arena.reset();
        const list = U64List.of(...hashes);
        if (store) {
          expect(table.countStored(list, 1_000_000)).toBe(0);
          for (const hash of hashes) model.set(hash, (model.get(hash) ?? 0) + 1);
        } else {
          const kept = hashes.filter((hash) => {
            const count = model.get(hash) ?? 0;
            if (count > 1) model.set(hash, count - 1);
            else model.delete(hash);
            return count <= 1;
          });
          table.releaseRemoved(list);
          expect(list.toBigInts()).toEqual(kept);
        }
        expect(table.size).toBe(model.size);
        expect([...model.keys()].every((hash) => holds(table, hash))).toBe(true);
      }
      table.free();
    }),
    fixedSeed,
  );
});

/** Of so many keys that many buckets are full, some by entries of others. */
const MANY_KEYS = 3000;

function spread(index: number): bigint {
  return (BigInt(index) * 0x9e37_79b9_7f4a_7c15n) % 2n ** 64n;
}

/** `count` of the first MANY_KEYS, none twice, another choice each round. */
function chosen(round: number, count: number): bigint[] {
  const step = [7, 11, 13, 17, 19][round % 5] as number;
  return Array.from({ length: count }, (_, at) => spread((round * 501 + at * step) % MANY_KEYS));
}

test('RefcountTable counts as a Map does where entries lie far from their places', () => {
  const table = new RefcountTable();
  const model = new Map<bigint, number>();
  for (let round = 0; round < 60; round++) {
    arena.reset();
    const added = chosen(round, 2000);
    table.countStored(U64List.of(...added), 1e6);
    for (const hash of added) model.set(hash, (model.get(hash) ?? 0) + 1);
    const taken = chosen(round * 3 + 1, 1900);
    const list = U64List.of(...taken);
    table.releaseRemoved(list);
    expect(list.toBigInts()).toEqual(taken.filter((hash) => (model.get(hash) ?? 0) <= 1));
    for (const hash of taken) {
      const count = model.get(hash) ?? 0;
      if (count > 1) model.set(hash, count - 1);
      else model.delete(hash);
    }
    expect(table.size).toBe(model.size);
    const found = Array.from({ length: MANY_KEYS }, (_, at) => holds(table, spread(at)));
    expect(found).toEqual(Array.from({ length: MANY_KEYS }, (_, at) => model.has(spread(at))));
  }
  table.free();
});

test('NamespaceTable keeps the namespace of each hash whatever is forgotten around it', () => {
  const table = new NamespaceTable();
  const model = new Map<bigint, number>();
  for (let round = 0; round < 40; round++) {
    arena.reset();
    // A hash has one namespace always, its own.
    for (const hash of chosen(round, 1500)) {
      const namespace = Number(hash & 0xff_ffffn);
      table.mark(U64List.of(hash), namespace, ~namespace >>> 0, round);
      model.set(hash, namespace);
    }
    const forgotten = chosen(round * 3 + 1, 1400);
    table.forget(U64List.of(...forgotten));
    for (const hash of forgotten) model.delete(hash);
    expect(table.size).toBe(model.size);
    for (const [hash, namespace] of model) {
      const state = table.stateOf(Number(hash & 0xffff_ffffn), Number(hash >> 32n));
      expect([state, table.foundLow, table.foundHigh]).toEqual([
        'namespaced',
        namespace,
        ~namespace >>> 0,
      ]);
    }
  }
  table.free();
});

test('RefcountTable holds 200,000 keys, gives half of them up, and is empty after clear()', () => {
  const set = new RefcountTable();
  const random = (index: number): bigint => (BigInt(index) * 0x9e37_79b9_7f4a_7c15n) % 2n ** 64n;
  for (let start = 0; start < 200_000; start += 1000) {
    arena.reset();
    set.countStored(U64List.of(...Array.from({ length: 1000 }, (_, i) => random(start + i))), 1e6);
  }
  expect(set.size).toBe(200_000);
  for (let start = 0; start < 200_000; start += 2000) {
    arena.reset();
    set.releaseRemoved(U64List.of(...Array.from({ length: 1000 }, (_, i) => random(start + i))));
  }
  expect(set.size).toBe(100_000);
  const present = (index: number): boolean => holds(set, random(index));
  expect([0, 999, 1000, 1999, 2000, 199_999].map(present)).toEqual([
    false,
    false,
    true,
    true,
    false,
    true,
  ]);
  set.clear();
  expect(set.size).toBe(0);
  expect(present(1000)).toBe(false);
  set.free();
});

test('NamespaceTable: other namespaces and unsalted stores make ambiguous, removes forget the rest', () => {
  const table = new NamespaceTable();
  table.mark(U64List.of(1n, 2n, 3n), 7, 8, 10);
  expect(table.stateOf(1, 0)).toBe('namespaced');
  expect([table.foundLow, table.foundHigh]).toEqual([7, 8]);
  table.mark(U64List.of(2n), 9, 8, 11);
  table.markUnsalted(U64List.of(3n, 4n), 12);
  expect([1, 2, 3, 4].map((low) => table.stateOf(low, 0))).toEqual([
    'namespaced',
    'ambiguous',
    'ambiguous',
    'none',
  ]);
  table.forget(U64List.of(1n, 2n, 3n));
  expect([1, 2, 3].map((low) => table.stateOf(low, 0))).toEqual(['none', 'ambiguous', 'ambiguous']);
  // Told late of a remove: what was stored since then stays as it is.
  table.forgetAmbiguous(U64List.of(2n, 3n), 11);
  expect([2, 3].map((low) => table.stateOf(low, 0))).toEqual(['ambiguous', 'ambiguous']);
  table.forgetAmbiguous(U64List.of(2n, 3n), 12);
  expect([2, 3].map((low) => table.stateOf(low, 0))).toEqual(['none', 'ambiguous']);
  table.free();
});

test('U64List.repeats() finds any repeated entry and the parent', () => {
  fc.assert(
    fc.property(keys, fc.option(key), (hashes, parent) => {
      arena.reset();
      const list = U64List.of(...hashes);
      const all = parent === null ? hashes : [parent, ...hashes];
      const low = Number((parent ?? 0n) & 0xffff_ffffn);
      const high = Number((parent ?? 0n) >> 32n);
      expect(list.repeats(parent !== null, low, high)).toBe(new Set(all).size < all.length);
    }),
    fixedSeed,
  );
});

test('a bound refuses new keys, counts them, and leaves those held alone', () => {
  arena.reset();
  const set = new RefcountTable();
  expect(set.countStored(U64List.of(1n, 2n, 3n, 1n), 2)).toBe(1);
  expect(set.countStored(U64List.of(2n, 4n), 2)).toBe(1);
  expect(set.size).toBe(2);
  set.free();
});

test('keys that differ in single bits, or in their upper halves alone, do not crowd', () => {
  const families = [
    Array.from({ length: 20_000 }, (_, index) => BigInt(index) << 44n),
    Array.from({ length: 20_000 }, (_, index) => BigInt(index) << 32n),
    Array.from({ length: 20_000 }, (_, index) => BigInt(index)),
  ];
  for (const family of families) {
    arena.reset();
    const set = new RefcountTable();
    const list = U64List.of(...family.map((key) => BigInt.asUintN(64, key)));
    const startMs = performance.now();
    set.countStored(list, 1e6);
    // Quadratic time would be hundreds of times this.
    expect(performance.now() - startMs).toBeLessThan(250);
    expect(set.size).toBe(20_000);
    set.free();
  }
});
