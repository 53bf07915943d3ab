import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Outbox, type OutboxMessage } from '../../src/sinks/outbox.ts';
import { fixedSeed } from '../support/properties.ts';

function message(sequence: number, bytes: number): OutboxMessage {
  return { sequence, envelope: Buffer.alloc(bytes) };
}

test('messages leave in the order they came, and are kept until they are confirmed', () => {
  const outbox = new Outbox(1000);
  for (let sequence = 0; sequence < 5; sequence++) outbox.push(message(sequence, 10));
  expect([outbox.next()?.sequence, outbox.next()?.sequence]).toEqual([0, 1]);
  expect([outbox.length, outbox.waiting, outbox.bytes]).toEqual([5, 3, 50]);
  outbox.confirm(0);
  expect([outbox.length, outbox.waiting, outbox.bytes]).toEqual([4, 3, 40]);
});

test('what is not confirmed waits again after rewind(), the same bytes', () => {
  const outbox = new Outbox(1000);
  const sent = [message(0, 10), message(1, 10), message(2, 10)];
  for (const one of sent) outbox.push(one);
  const first = [outbox.next(), outbox.next()];
  outbox.confirm(0);
  expect(outbox.rewind()).toBe(1);
  expect(outbox.next()).toBe(first[1]);
  expect(outbox.next()?.envelope).toBe(sent[2]?.envelope);
  expect(outbox.next()).toBeUndefined();
});

test('a confirmation reaches no further than what was handed over', () => {
  const outbox = new Outbox(1000);
  for (let sequence = 0; sequence < 3; sequence++) outbox.push(message(sequence, 10));
  outbox.next();
  outbox.confirm(2);
  expect([outbox.length, outbox.waiting]).toEqual([2, 2]);
});

test('a full outbox gives up its oldest whole messages and says how many', () => {
  const outbox = new Outbox(100);
  for (let sequence = 0; sequence < 10; sequence++) {
    expect(outbox.push(message(sequence, 10))).toBe(0);
  }
  expect(outbox.push(message(10, 25))).toBe(3);
  expect(outbox.next()?.sequence).toBe(3);
});

test('one that was handed over is lost only with its link, if it is not confirmed before', () => {
  const outbox = new Outbox(100);
  for (let sequence = 0; sequence < 10; sequence++) outbox.push(message(sequence, 10));
  for (let sequence = 0; sequence < 4; sequence++) outbox.next();
  expect(outbox.push(message(10, 60))).toBe(2);
  outbox.confirm(1);
  expect(outbox.loseOrphans()).toBe(2);
  expect(outbox.loseOrphans()).toBe(0);
  expect(outbox.next()?.sequence).toBe(6);
  outbox.push(message(11, 100));
  outbox.confirm(6);
  expect(outbox.loseOrphans()).toBe(0);
});

test('what is discarded counts no longer, wherever the plane had got to', () => {
  const outbox = new Outbox(1000);
  for (let sequence = 0; sequence < 3; sequence++) outbox.push(message(sequence, 10));
  outbox.next();
  outbox.next();
  outbox.discard();
  expect([outbox.length, outbox.waiting, outbox.bytes]).toEqual([2, 1, 20]);
  expect(outbox.next()?.sequence).toBe(2);
  outbox.confirm(2);
  expect([outbox.length, outbox.bytes]).toEqual([0, 0]);
});

test('a message larger than the outbox is given up itself', () => {
  const outbox = new Outbox(100);
  outbox.push(message(0, 10));
  expect(outbox.push(message(1, 101))).toBe(2);
  expect(outbox.next()).toBeUndefined();
});

test('over any history the figures are those of a plain list', () => {
  const step = fc.oneof(
    fc.record({ push: fc.integer({ min: 1, max: 60 }) }),
    fc.constantFrom('next', 'rewind', 'confirm'),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const outbox = new Outbox(500);
      let kept: OutboxMessage[] = [];
      let handedOver = 0;
      let sequence = 0;
      const bytesOf = (list: OutboxMessage[]): number =>
        list.reduce((sum, { envelope }) => sum + envelope.length, 0);
      for (const one of steps) {
        if (typeof one === 'object') {
          const added = message(sequence++, one.push);
          outbox.push(added);
          while (bytesOf(kept) + one.push > 500) {
            kept = kept.slice(1);
            handedOver = Math.max(0, handedOver - 1);
          }
          kept.push(added);
        } else if (one === 'next') {
          expect(outbox.next()?.sequence).toBe(kept[handedOver]?.sequence);
          if (handedOver < kept.length) handedOver++;
        } else if (one === 'rewind') {
          expect(outbox.rewind()).toBe(handedOver);
          handedOver = 0;
        } else {
          const until = Math.floor(handedOver / 2);
          outbox.confirm(kept[until - 1]?.sequence ?? -1);
          kept = kept.slice(until);
          handedOver -= until;
        }
        expect([outbox.length, outbox.waiting]).toEqual([kept.length, kept.length - handedOver]);
        expect(outbox.bytes).toBe(bytesOf(kept));
      }
    }),
    { ...fixedSeed, numRuns: Math.ceil(fixedSeed.numRuns / 4) },
  );
});
