import { expect, test } from 'vitest';
import { Outbox, type OutboxMessage } from '../../src/sinks/outbox.ts';

function message(sequence: number, bytes: number): OutboxMessage {
  return { sequence, envelope: Buffer.alloc(bytes) };
}

test('messages leave in the order they came', () => {
  const outbox = new Outbox(1000);
  for (let sequence = 0; sequence < 5; sequence++) outbox.push(message(sequence, 10));
  expect([outbox.length, outbox.bytes]).toEqual([5, 50]);
  expect([outbox.shift()?.sequence, outbox.shift()?.sequence]).toEqual([0, 1]);
  expect([outbox.length, outbox.bytes]).toEqual([3, 30]);
});

test('a full outbox gives up its oldest whole messages and says how many', () => {
  const outbox = new Outbox(100);
  for (let sequence = 0; sequence < 10; sequence++)
    expect(outbox.push(message(sequence, 10))).toBe(0);
  expect(outbox.push(message(10, 25))).toBe(3);
  expect(outbox.shift()?.sequence).toBe(3);
});

test('a message larger than the outbox is given up itself', () => {
  const outbox = new Outbox(100);
  outbox.push(message(0, 10));
  expect(outbox.push(message(1, 101))).toBe(2);
  expect(outbox.shift()).toBeUndefined();
});

test('a long life does not grow the list', () => {
  const outbox = new Outbox(1000);
  for (let sequence = 0; sequence < 100_000; sequence++) {
    outbox.push(message(sequence, 10));
    expect(outbox.shift()?.sequence).toBe(sequence);
  }
  expect([outbox.length, outbox.bytes]).toEqual([0, 0]);
});
