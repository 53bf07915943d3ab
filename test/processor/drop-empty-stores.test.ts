import { Subject } from 'rxjs';
import { expect, test } from 'vitest';
import { dropEmptyStores } from '../../src/processor/drop-empty-stores.ts';
import type { Compat } from '../../src/protocol/compat.ts';
import type { PlacementBatch } from '../../src/protocol/placement-event.ts';
import { cleared, removed, stored } from '../support/placements.ts';

/** What leaves, batch by batch. */
function passed(compat: Compat, batches: readonly PlacementBatch[]): PlacementBatch[] {
  const out: PlacementBatch[] = [];
  const source$ = new Subject<PlacementBatch>();
  source$.pipe(dropEmptyStores(compat)).subscribe((batch) => out.push(batch));
  for (const batch of batches) source$.next(batch);
  source$.complete();
  return out;
}

test('safe: stores without blocks go, the rest stays in its order', () => {
  const kept = [stored(null, [1n]), removed([2n]), cleared(), stored(1n, [3n], { tier: 'disk' })];
  const [first, second, third, fourth] = kept as [never, never, never, never];
  const mixed = [stored(7n, []), first, stored(1n, []), second, third, stored(null, []), fourth];
  const [out, ...more] = passed('safe', [mixed]);
  expect(more).toEqual([]);
  expect(out).toHaveLength(4);
  for (const [index, event] of kept.entries()) expect(out?.[index]).toBe(event);
});

test('safe: a remove without blocks is no store, and separates what stands beside it', () => {
  const batch = [stored(null, [1n]), removed([]), stored(1n, [2n])];
  expect(passed('safe', [batch])).toEqual([batch]);
});

test('safe: a batch of such stores alone is not passed on', () => {
  const batches = [[stored(null, []), stored(9n, [])], [stored(null, [1n])]];
  expect(passed('safe', batches)).toEqual([batches[1]]);
});

test('safe: a batch without any passes as it is', () => {
  const batch = [stored(null, [1n]), removed([1n])];
  const [out] = passed('safe', [batch]);
  expect(out).toBe(batch);
});

test('strict: they pass like any other', () => {
  const batch = [stored(7n, []), stored(null, [1n])];
  const [out] = passed('strict', [batch]);
  expect(out).toBe(batch);
  expect(out).toHaveLength(2);
});
