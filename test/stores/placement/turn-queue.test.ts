/** How long a turn of the event loop may take for what comes in portions. */
import { expect, test } from 'vitest';
import { TurnQueue } from '../../../src/stores/placement/turn-queue.ts';

test('a turn ends once its time is over, and portions of all go in order', () => {
  let nowMs = 100;
  const turns: (() => void)[] = [];
  const queue = new TurnQueue({ defer: (turn) => turns.push(turn), nowMs: () => nowMs });
  const ran: string[] = [];
  const portion =
    (name: string, left: number): (() => void) =>
    () => {
      ran.push(`${name}${left}`);
      nowMs += 3;
      if (left > 0) queue.add(portion(name, left - 1));
    };
  for (const name of ['a', 'b', 'c']) queue.add(portion(name, 1));
  const played: string[][] = [];
  while (turns.length > 0) {
    expect(turns).toHaveLength(1);
    turns.shift()?.();
    played.push(ran.splice(0));
  }
  expect(played).toEqual([
    ['a1', 'b1'],
    ['c1', 'a0'],
    ['b0', 'c0'],
  ]);
  queue.add(portion('d', 0));
  expect(turns).toHaveLength(1);
});

test('what takes no time is done in one turn', () => {
  const turns: (() => void)[] = [];
  const queue = new TurnQueue({ defer: (turn) => turns.push(turn), nowMs: () => 0 });
  let ran = 0;
  const portion = (): void => {
    if (++ran < 100) queue.add(portion);
  };
  queue.add(portion);
  turns.shift()?.();
  expect([ran, turns.length]).toEqual([100, 0]);
});
