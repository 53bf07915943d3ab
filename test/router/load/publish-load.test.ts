import { TestScheduler } from 'rxjs/testing';
import { expect, test } from 'vitest';
import { publishLoad } from '../../../src/router/load/publish-load.ts';

const LOADS: Record<string, number | null> = { a: 0, b: 100, c: 101, u: null };

/** What was read of a rank, and what routers are told, in virtual time. */
function play(read: string, told: string): void {
  const scheduler = new TestScheduler((actual, wanted) => expect(actual).toEqual(wanted));
  scheduler.run(({ hot, expectObservable }) => {
    expectObservable(hot(read, LOADS).pipe(publishLoad(scheduler)), '25s !').toBe(told, LOADS);
  });
}

test('a value is told a millisecond after it was read, and again every ten seconds', () => {
  play('a', '1ms a 9999ms a 9999ms a');
});

test('a repeat of it changes nothing', () => {
  play('a 4s a 4s a', '1ms a 9999ms a 9999ms a');
});

test('a new value is told at once, and the ten seconds begin again', () => {
  play('a 5s b', '1ms a 5000ms b 9999ms b');
});

test('of a burst within a millisecond only the last value is told', () => {
  play('(abc)', '1ms c 9999ms c 9999ms c');
});

test('nothing is told before the first value, and no more once it is unknown', () => {
  play('u 3s a 3s u', '3002ms a');
});

test('a value that is known again is told, be it the same', () => {
  play('a 2s u 2s a', '1ms a 4001ms a 9999ms a 9999ms a');
});
