import { expect, test } from 'vitest';
import { GapCounter } from '../../src/listener/gap-counter.ts';

function missing(...numbers: bigint[]): number[] {
  const counter = new GapCounter();
  return numbers.map((number) => counter.observe(number));
}

test('numbers without a hole miss nothing', () => {
  expect(missing(0n, 1n, 2n)).toEqual([0, 0, 0]);
});

test('a jump misses what it leaves out, a first number what lies below it', () => {
  expect(missing(3n, 4n, 9n)).toEqual([3, 0, 4]);
});

test('a number that is not above the last one starts a new count', () => {
  expect(missing(0n, 5n, 0n, 1n, 1n, 3n)).toEqual([0, 4, 0, 0, 0, 1]);
});

test('the end marker of replays moves nothing', () => {
  const counter = new GapCounter();
  counter.observe(7n);
  expect(counter.observe(2n ** 64n - 1n)).toBe(0);
  expect(counter.highest).toBe(7n);
});

test('a jump wider than any engine can make is one loss of unknown size', () => {
  expect(missing(0n, 2n ** 32n + 1n, 2n ** 63n, 2n ** 63n + 3n)).toEqual([0, 2 ** 32, 1, 2]);
});
