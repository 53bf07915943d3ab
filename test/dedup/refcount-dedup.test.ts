import { expect, test } from 'vitest';
import { RefcountDedup } from '../../src/dedup/refcount-dedup.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PlacementEvent } from '../../src/protocol/placement-event.ts';
import { cleared, removed, shown, stored } from '../support/placements.ts';

function passed(events: PlacementEvent[], metrics = new RelayMetrics(), max = 1000): string[] {
  const dedup = new RefcountDedup({ maxTrackedBlocks: max }, metrics);
  const out: PlacementEvent[] = [];
  for (const event of events) dedup.push(event, out);
  return out.map(shown);
}

test('a remove passes only when the last copy goes; an uncounted one always does', () => {
  const s = (): PlacementEvent => stored(null, [1n]);
  const r = (): PlacementEvent => removed([1n]);
  expect(passed([s(), s(), r(), r(), r()])).toEqual(['S [1]', 'S [1]', 'R [1]', 'R [1]']);
});

test('a hash named twice in one remove takes two counts', () => {
  const twice = (): PlacementEvent => removed([1n, 1n]);
  expect(passed([stored(null, [1n]), twice()]).at(-1)).toBe('R [1,1]');
  expect(passed([stored(null, [1n]), stored(null, [1n]), twice()]).at(-1)).toBe('R [1]');
});

test('ranks and tiers are counted apart', () => {
  const events = [
    stored(null, [1n]),
    stored(null, [1n], { tier: 'host_pinned' }),
    stored(null, [1n], { dpRank: 1 }),
    removed([1n]),
    removed([1n], { tier: 'host_pinned' }),
    removed([1n], { dpRank: 1 }),
  ];
  expect(passed(events)).toHaveLength(6);
});

test('a clear forgets all tiers of its rank and no other', () => {
  const events = [
    stored(null, [1n, 2n]),
    stored(null, [1n], { tier: 'disk' }),
    stored(null, [5n], { dpRank: 1 }),
    stored(null, [5n], { dpRank: 1 }),
    cleared(0),
    removed([1n]),
    removed([5n], { dpRank: 1 }),
  ];
  const metrics = new RelayMetrics();
  expect(passed(events, metrics)).toEqual([
    'S [1,2]',
    'S [1] disk',
    'S [5] r1',
    'S [5] r1',
    'X',
    'R [1]',
  ]);
  expect(metrics.trackedBlocks).toMatchObject({ device: 1, disk: 0 });
  expect(metrics.suppressedRemoves).toBe(1);
});

test('beyond the bound blocks go uncounted, said by a counter, and their removes pass', () => {
  const metrics = new RelayMetrics();
  const events = [stored(null, [1n, 2n, 3n]), stored(null, [3n]), removed([3n]), removed([3n])];
  expect(passed(events, metrics, 2)).toEqual(['S [1,2,3]', 'S [3]', 'R [3]', 'R [3]']);
  expect(metrics.untrackedBlocks).toBe(2);
  expect(metrics.trackedBlocks.device).toBe(2);
});

test('ranks beyond the bound are not counted, so their removes pass', () => {
  const metrics = new RelayMetrics();
  const ranks = Array.from({ length: 1024 }, (_, dpRank) => stored(null, [1n], { dpRank }));
  const beyond = { dpRank: 1024 };
  const events = [...ranks, stored(null, [1n, 2n], beyond), removed([1n], beyond)];
  expect(passed([...events, removed([1n]), removed([1n])], metrics, 2000).slice(1024)).toEqual([
    'S [1,2] r1024',
    'R [1] r1024',
    'R [1]',
    'R [1]',
  ]);
  expect(metrics.untrackedBlocks).toBe(2);
});
