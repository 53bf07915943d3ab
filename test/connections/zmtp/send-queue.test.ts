/** What one subscriber has waiting: bounds, what a socket has, and whose memory is given back when. */
import { expect, test } from 'vitest';
import { Parcel } from '../../../src/connections/zmtp/parcel.ts';
import { SendQueue } from '../../../src/connections/zmtp/send-queue.ts';
import { MessageSlab } from '../../../src/protocol/message-slab.ts';

/** A parcel of one slab, which counts its messages that are still needed. */
function parcelOf(messages: number, bytes = 10): { parcel: Parcel; slab: MessageSlab } {
  const slab = MessageSlab.ofOne(bytes);
  const parcel = new Parcel();
  for (let index = 0; index < messages; index++) {
    slab.messages++;
    parcel.add([slab.buffer], slab);
  }
  return { parcel, slab };
}

/** Offers a parcel whose maker then lets go. */
function offer(queue: SendQueue, messages: number, bytes?: number): MessageSlab | null {
  const { parcel, slab } = parcelOf(messages, bytes);
  const isTaken = queue.offer(parcel);
  parcel.letGo();
  return isTaken ? slab : null;
}

const BOUNDS = { messages: 10, bytes: 1000 };

test('parcels leave in order, some at a time, and are given back once they are through', () => {
  const queue = new SendQueue(BOUNDS);
  const slabs = [1, 2, 3].map((messages) => offer(queue, messages, 100));
  expect(queue.take(150).map(({ messages }) => messages)).toEqual([1, 2]);
  expect(slabs.map((slab) => slab?.messages)).toEqual([1, 2, 3]);
  queue.confirm();
  expect(slabs.map((slab) => slab?.messages)).toEqual([0, 0, 3]);
  expect(queue.isEmpty).toBe(false);
  expect(queue.take(1).map(({ messages }) => messages)).toEqual([3]);
  expect(queue.take(1)).toEqual([]);
  queue.confirm();
  expect(queue.isEmpty).toBe(true);
});

test('a parcel is given back once the last of its holders has let go', () => {
  const queues = [new SendQueue(BOUNDS), new SendQueue(BOUNDS)];
  const { parcel, slab } = parcelOf(2);
  for (const queue of queues) queue.offer(parcel);
  parcel.letGo();
  queues[0]?.take(1);
  queues[0]?.confirm();
  expect(slab.messages).toBe(2);
  queues[1]?.clear();
  expect(slab.messages).toBe(0);
});

test.each([
  ['messages', 4, 10],
  ['bytes', 1, 400],
])('behind its bound in %s it refuses until half has left', (_bound, messages, bytes) => {
  const queue = new SendQueue(BOUNDS);
  const isTaken = (): boolean => offer(queue, messages, bytes) !== null;
  expect([isTaken(), isTaken(), isTaken(), isTaken()]).toEqual([true, true, false, false]);
  queue.take(1);
  queue.confirm();
  expect(isTaken()).toBe(true);
  expect(isTaken()).toBe(false);
});

test('one that is larger than the bounds has its turn when nothing waits', () => {
  const queue = new SendQueue(BOUNDS);
  expect(offer(queue, 11)).not.toBeNull();
  expect(offer(queue, 1)).toBeNull();
  queue.take(1);
  queue.confirm();
  expect(offer(queue, 1, 2000)).not.toBeNull();
});

test('what a lost socket had waits again; what is cleared is not what a socket has', () => {
  const queue = new SendQueue(BOUNDS);
  const slabs = [1, 2, 3].map((messages) => offer(queue, messages));
  queue.take(15);
  queue.rewind();
  expect(queue.take(15).map(({ messages }) => messages)).toEqual([1, 2]);
  queue.clear();
  expect(slabs.map((slab) => slab?.messages)).toEqual([1, 2, 0]);
  expect(queue.take(100)).toEqual([]);
  queue.confirm();
  expect(slabs.map((slab) => slab?.messages)).toEqual([0, 0, 0]);
  expect(queue.isEmpty).toBe(true);
});

test('a queue that never runs empty keeps nothing of what is through', () => {
  const queue = new SendQueue({ messages: 1e6, bytes: 1e9 });
  for (let round = 0; round < 5000; round++) {
    offer(queue, 1);
    offer(queue, 1);
    queue.take(1);
    queue.confirm();
  }
  expect(queue.take(1e9)).toHaveLength(5000);
});
