/** What the numbers of two messages that follow each other say. */
import { expect, test } from 'vitest';
import { MessageOrder, type OrderStep } from '../../../src/stores/mooncake/message-order.ts';
import { capturesOf, messageOf } from '../../support/mooncake-captures.ts';

type Message = readonly [sequence: bigint, firstId: bigint | null, lastId?: bigint | null];

function steps(messages: readonly Message[]): OrderStep[] {
  const order = new MessageOrder();
  return messages.map(([sequence, first, last = first]) =>
    order.observe(sequence, first, last, true),
  );
}

test('numbers that follow each other are in order, whatever the first one is', () => {
  expect(
    steps([
      [18n, 1n, 2n],
      [19n, 3n],
      [20n, null],
      [21n, 4n],
    ]),
  ).toEqual([{ kind: 'first' }, { kind: 'next' }, { kind: 'next' }, { kind: 'next' }]);
});

test('a number left out is a loss, counted', () => {
  expect(
    steps([
      [1n, 1n],
      [2n, 2n],
      [5n, 3n],
    ])[2],
  ).toEqual({ kind: 'gap', lostMessages: 2 });
  expect(
    steps([
      [1n, 1n],
      [2n ** 63n, 2n],
    ])[1],
  ).toEqual({ kind: 'gap', lostMessages: 1 });
});

test('a number that does not rise is a restart, and the next one follows it', () => {
  expect(
    steps([
      [7n, 90n],
      [1n, 1n],
      [2n, 2n],
    ]),
  ).toEqual([{ kind: 'first' }, { kind: 'restart' }, { kind: 'next' }]);
  expect(
    steps([
      [7n, 90n],
      [7n, 91n],
    ])[1],
  ).toEqual({ kind: 'restart' });
});

test('an event id that is not the next one under the next number is a restart, where all could be read', () => {
  const later: Message[] = [
    [12n, 22n],
    [13n, 27n],
    [14n, 28n],
  ];
  expect(steps(later)).toEqual([{ kind: 'first' }, { kind: 'restart' }, { kind: 'next' }]);
  const unread = new MessageOrder();
  unread.observe(12n, 22n, 22n, false);
  expect(unread.observe(13n, 27n, 27n, true)).toEqual({ kind: 'next' });
  expect(unread.observe(14n, 29n, 29n, false)).toEqual({ kind: 'next' });
  expect(unread.observe(15n, 40n, 40n, true)).toEqual({ kind: 'next' });
});

test('a lower event id under a higher number is a restart too', () => {
  expect(
    steps([
      [3n, 90n],
      [4n, 2n],
      [5n, 3n],
    ]),
  ).toEqual([{ kind: 'first' }, { kind: 'restart' }, { kind: 'next' }]);
  expect(
    steps([
      [3n, 90n],
      [400n, 2n],
    ])[1],
  ).toEqual({ kind: 'restart' });
});

test('after a reset the next message is the first', () => {
  const order = new MessageOrder();
  order.observe(5n, 5n, 5n, true);
  order.reset();
  expect(order.lastSequence).toBe(null);
  expect(order.observe(2n, 1n, 1n, true)).toEqual({ kind: 'first' });
});

test('the captured overflow: every dropped event is a number left out', () => {
  const order = new MessageOrder();
  const captured = capturesOf('overflow').filter(({ decoded }) => decoded.kind === 'live');
  const seen = captured.map(({ decoded, ...capture }) => {
    const [, events] = messageOf({ decoded, ...capture });
    const ids = events.map(({ event_id }) => BigInt(event_id as number));
    return order.observe(BigInt(decoded.seq ?? -1), ids.at(0) ?? null, ids.at(-1) ?? null, true);
  });
  expect(seen).toEqual([
    { kind: 'first' },
    { kind: 'gap', lostMessages: 25 },
    { kind: 'next' },
    { kind: 'gap', lostMessages: 729 },
  ]);
});
