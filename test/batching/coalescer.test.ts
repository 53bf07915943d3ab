import { expect, test } from 'vitest';
import { Coalescer } from '../../src/batching/coalescer.ts';
import { arena } from '../../src/kernel/arena.ts';
import { U64List } from '../../src/kernel/u64-list.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PlacementEvent } from '../../src/protocol/placement-event.ts';
import { cleared, removed, shown, stored } from '../support/placements.ts';

function coalesced(maxBatchBlocks: number, ...events: PlacementEvent[]): string[] {
  const coalescer = new Coalescer({ maxBatchBlocks }, new RelayMetrics());
  const out: PlacementEvent[] = [];
  for (const event of events) coalescer.push(event, out);
  coalescer.flush(out);
  return out.map(shown);
}

test('a store that continues the pending chain joins it under the first parent', () => {
  const events = [stored(9n, [1n]), stored(1n, [2n, 3n]), stored(3n, [4n])];
  expect(coalesced(128, ...events)).toEqual(['S 9:[1,2,3,4]']);
});

test('removes of one rank and tier join', () => {
  expect(coalesced(128, removed([1n]), removed([2n, 3n]))).toEqual(['R [1,2,3]']);
});

test.each([
  ['the parent chain breaks', stored(null, [1n]), stored(7n, [2n]), ['S [1]', 'S 7:[2]']],
  ['the store is a root', stored(null, [1n]), stored(null, [2n]), ['S [1]', 'S [2]']],
  [
    'the storage tier changes',
    removed([1n]),
    removed([2n], { tier: 'disk' }),
    ['R [1]', 'R [2] disk'],
  ],
  ['the rank changes', removed([1n]), removed([2n], { dpRank: 1 }), ['R [1]', 'R [2] r1']],
  ['the kind changes', stored(null, [1n]), removed([1n]), ['S [1]', 'R [1]']],
  [
    'the session changes',
    stored(null, [1n], { sessionId: 'a' }),
    stored(1n, [2n], { sessionId: 'b' }),
    ['S [1]', 'S 1:[2]'],
  ],
])('two events stay apart when %s', (_, first, second, expected) => {
  expect(coalesced(128, first, second)).toEqual(expected);
});

test('the cap is checked after a whole event, and no event is split', () => {
  const long = Array.from({ length: 5 }, (_, index) => BigInt(10 + index));
  expect(
    coalesced(3, stored(null, [1n]), stored(1n, [2n]), stored(2n, [3n]), stored(3n, [4n])),
  ).toEqual(['S [1,2,3]', 'S 3:[4]']);
  expect(coalesced(3, stored(null, [1n, 2n]), stored(2n, long))).toEqual([
    'S [1,2,10,11,12,13,14]',
  ]);
  expect(coalesced(3, stored(null, long), stored(14n, [1n]))).toEqual([
    'S [10,11,12,13,14]',
    'S 14:[1]',
  ]);
});

test('a clear flushes what is pending and goes at once', () => {
  expect(coalesced(128, stored(null, [1n]), cleared(), stored(1n, [2n]))).toEqual([
    'S [1]',
    'X',
    'S 1:[2]',
  ]);
});

test('a pending store without blocks takes in a root store under its own parent', () => {
  expect(coalesced(128, stored(7n, []), stored(null, [5n]))).toEqual(['S 7:[5]']);
});

test('image data stays with its block', () => {
  const info = { mmHashes: BigUint64Array.of(5n), offsets: [new BigUint64Array(0)] };
  const last = stored(2n, [3n]);
  last.mmInfos = [info];
  const coalescer = new Coalescer({ maxBatchBlocks: 128 }, new RelayMetrics());
  const out: PlacementEvent[] = [];
  for (const event of [stored(null, [1n, 2n]), last]) coalescer.push(event, out);
  coalescer.flush(out);
  expect(out[0]?.mmInfos).toEqual([null, null, info]);
});

test('what is kept outlives the native batch, grows, and is exact', () => {
  const coalescer = new Coalescer({ maxBatchBlocks: 100_000 }, new RelayMetrics());
  const out: PlacementEvent[] = [];
  for (let hash = 1n; hash <= 2000n; hash++) {
    coalescer.push(stored(hash === 1n ? null : hash - 1n, [hash]), out);
    coalescer.keepPending();
    arena.reset();
  }
  coalescer.flush(out);
  expect(out).toHaveLength(1);
  expect(out[0]?.blockHashes.toBigInts()).toEqual(
    Array.from({ length: 2000 }, (_, i) => BigInt(i + 1)),
  );
  expect(out[0]?.tokensHashes?.at(1999)).toBe(3000n);
  coalescer.free();
});

test('a list that was not kept cannot be used after its batch', () => {
  const event = stored(null, [1n]);
  arena.reset();
  expect(() => event.blockHashes.lowAt(0)).toThrow(/after the next native batch/);
});

/** Removes of a block each, as the engine's reader hands them on where they come next to each other. */
function run(hashes: readonly bigint[]): PlacementEvent {
  const event = removed(hashes);
  event.eventCount = hashes.length;
  return event;
}

test.each([1, 2, 3, 5, 128])(
  'removes that were read as one come to what they would one by one, with a cap of %i',
  (maxBatchBlocks) => {
    const hashes = Array.from({ length: 11 }, (_, at) => BigInt(at + 1));
    const others = [removed([90n, 91n]), removed([92n], { tier: 'disk' }), stored(null, [93n])];
    for (const other of others) {
      for (let count = 2; count <= hashes.length; count++) {
        const single = new RelayMetrics();
        const joined = new RelayMetrics();
        const outOf = (metrics: RelayMetrics, removes: PlacementEvent[]): string[] => {
          const coalescer = new Coalescer({ maxBatchBlocks }, metrics);
          const out: PlacementEvent[] = [];
          const before = other.withLists(
            U64List.of(...other.blockHashes.toBigInts()),
            other.tokensHashes,
          );
          for (const event of [before, ...removes, removed([99n])]) coalescer.push(event, out);
          coalescer.flush(out);
          return out.map(shown);
        };
        const taken = hashes.slice(0, count);
        const expected = outOf(
          single,
          taken.map((hash) => removed([hash])),
        );
        expect(outOf(joined, [run(taken)])).toEqual(expected);
        expect(joined.coalescedEvents).toBe(single.coalescedEvents);
      }
    }
  },
);

test('a part of removes that were read as one has the id of its first', () => {
  const coalescer = new Coalescer({ maxBatchBlocks: 2 }, new RelayMetrics());
  const event = run([1n, 2n, 3n, 4n, 5n]);
  event.rawEventId = 7;
  const out: PlacementEvent[] = [];
  coalescer.push(event, out);
  coalescer.flush(out);
  expect(out.map(({ rawEventId }) => rawEventId)).toEqual([7, 9, 11]);
});
