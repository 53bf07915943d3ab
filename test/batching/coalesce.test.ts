import { map } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { expect, test } from 'vitest';
import { coalesce } from '../../src/batching/coalesce.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PlacementBatch } from '../../src/protocol/placement-event.ts';
import { cleared, removed, shown, stored } from '../support/placements.ts';

/** Plays marbles through coalesce(); each output batch is shown as text. */
function play(
  timeoutMs: number,
  marbles: string,
  batches: Record<string, () => PlacementBatch>,
  expected: string,
  values: Record<string, string[]>,
): void {
  const scheduler = new TestScheduler((actual, wanted) => expect(actual).toEqual(wanted));
  scheduler.run(({ cold, expectObservable }) => {
    const router$ = cold(marbles, batches).pipe(
      map((create) => create()),
      coalesce(
        { maxBatchBlocks: 128, timeoutMs, scheduler, nowMs: () => scheduler.now() },
        new RelayMetrics(),
      ),
      map((batch) => batch.map(shown)),
    );
    expectObservable(router$).toBe(expected, values);
  });
}

const a = (): PlacementBatch => [removed([1n])];
const b = (): PlacementBatch => [removed([2n])];

test('without a timeout every native batch leaves at once', () => {
  play(0, 'ab|', { a, b }, 'ab|', { a: ['R [1]'], b: ['R [2]'] });
});

test('the tail waits until timeoutMs after the last flush, across native batches', () => {
  play(5, 'ab 8ms |', { a, b }, '5ms r 4ms |', { r: ['R [1,2]'] });
});

test('after a pause the first batch does not wait', () => {
  play(5, '9ms a 20ms |', { a }, '9ms a 20ms |', { a: ['R [1]'] });
});

test('a structural flush moves the deadline, so that the timer waits out the rest', () => {
  const c = (): PlacementBatch => [stored(null, [3n])];
  play(5, 'a 2ms c 12ms |', { a, c }, '3ms x 4ms y 7ms |', { x: ['R [1]'], y: ['S [3]'] });
});

test('a clear does not wait, and what was pending goes before it', () => {
  const c = (): PlacementBatch => [cleared()];
  play(100, 'a 2ms c 2ms |', { a, c }, '3ms x 2ms |', { x: ['R [1]', 'X'] });
});

test('the end of the stream releases what is pending', () => {
  play(100, 'a|', { a }, '-(r|)', { r: ['R [1]'] });
});
