/** Memory of messages: it is used again, and never while one of its messages may still be sent. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EnvelopeEncoder, type PlaneMessage } from '../../src/protocol/envelope.ts';
import type { MessageRoom } from '../../src/protocol/message-slab.ts';
import { Outbox } from '../../src/sinks/outbox.ts';
import { fixedSeed } from '../support/properties.ts';
import { removedBatch } from '../support/removed-batch.ts';

/** Messages of about 10 KiB, three to a slab. */
const batch = removedBatch(3300);

/** As a plane may: all that is the message's, and not its envelope. */
function fillRoom({ slab, slabStart = 0, slabEnd = 0, envelope }: PlaneMessage): void {
  const end = envelope.byteOffset + envelope.length;
  slab?.buffer.fill(0xff, slabStart, envelope.byteOffset).fill(0xff, end, slabEnd);
}

/** How many slabs 300 messages take that are sent at once, and confirmed `confirmsBehind` messages later. */
function slabsOf(outboxBytes: number, confirmsBehind: number): number {
  const envelopes = new EnvelopeEncoder(1);
  const outbox = new Outbox(outboxBytes);
  const buffers = new Set<ArrayBufferLike>();
  for (let sequence = 0; sequence < 300; sequence++) {
    const message = envelopes.encode(batch, 0, 1, 0);
    buffers.add(message.envelope.buffer);
    outbox.push(message);
    outbox.next();
    outbox.confirm(sequence - confirmsBehind);
  }
  return buffers.size;
}

test('a slab is used again once all of its messages are confirmed', () => {
  expect(slabsOf(1 << 30, 20)).toBeLessThan(8);
});

test('a message that was dropped takes its slab out of use: it may be on its way', () => {
  expect(slabsOf(50_000, Number.POSITIVE_INFINITY)).toBeGreaterThan(20);
});

test('whatever is pushed, sent, confirmed and dropped, an unconfirmed message keeps its bytes', () => {
  const steps = fc.array(
    fc.record({
      hashes: fc.oneof(fc.nat(5000), fc.nat(50_000)),
      sends: fc.nat(4),
      confirms: fc.nat(6),
    }),
    {
      maxLength: 120,
    },
  );
  const rooms = fc.record({ before: fc.nat(300), behind: fc.nat(3) });
  fc.assert(
    fc.property(steps, rooms, (histories, room) => {
      const envelopes = new EnvelopeEncoder(1, 0, room);
      const outbox = new Outbox(400_000);
      const copies = new Map<number, { envelope: Buffer; copy: Buffer }>();
      let confirmed = -1;
      for (const { hashes, sends, confirms } of histories) {
        const message: PlaneMessage = envelopes.encode(removedBatch(hashes), 0, 1, 0);
        copies.set(message.sequence, {
          envelope: message.envelope,
          copy: Buffer.from(message.envelope),
        });
        fillRoom(message);
        outbox.push(message);
        for (let send = 0; send < sends; send++) outbox.next();
        if (confirms > 0) {
          confirmed = Math.max(confirmed, message.sequence - 6 + confirms);
          outbox.confirm(confirmed);
        }
        for (const [sequence, { envelope, copy }] of copies) {
          if (sequence > confirmed) expect(envelope.equals(copy)).toBe(true);
        }
      }
    }),
    fixedSeed,
  );
});

const ROOM: MessageRoom = { before: 50, behind: 2 };

/** Of one event and of several, alone in their memory and beside others, and closed behind what has been joined. */
function* messagesOf(envelopes: EnvelopeEncoder): Iterable<PlaneMessage> {
  for (let round = 0; round < 40; round++) {
    yield envelopes.encode(removedBatch(round), 0, 1, round);
    for (let joined = 0; joined <= round % 5; joined++) {
      if (!envelopes.append(removedBatch(500), 1e6)) throw new Error('not joined');
    }
    yield envelopes.close(round);
    if (round % 10 === 9) yield envelopes.encode(removedBatch(20_000), 0, 1, round);
  }
}

test('the room of a message begins where that of the one before ends, and has what was asked for', () => {
  let before: PlaneMessage | null = null;
  let following = 0;
  const slabs = new Set<unknown>();
  for (const message of messagesOf(new EnvelopeEncoder(1, 0, ROOM))) {
    const { slab, slabStart = -1, slabEnd = -1, envelope } = message;
    expect(envelope.buffer).toBe(slab?.buffer.buffer);
    expect(envelope.byteOffset - slabStart).toBeGreaterThanOrEqual(ROOM.before);
    expect(slabEnd - envelope.byteOffset - envelope.length).toBe(ROOM.behind);
    const follows = before !== null && before.slab === slab;
    expect(slabStart).toBe(follows ? before?.slabEnd : 0);
    if (follows) following++;
    slabs.add(slab);
    before = message;
  }
  expect(following).toBeGreaterThan(50);
  expect(slabs.size).toBeGreaterThan(2);
});

test('room around an envelope changes none of its bytes', () => {
  const plain = [...messagesOf(new EnvelopeEncoder(1))].map(({ envelope }) => envelope);
  const roomy = [...messagesOf(new EnvelopeEncoder(1, 0, ROOM))].map((message) => {
    fillRoom(message);
    return message.envelope;
  });
  expect(roomy).toEqual(plain);
});

test('room of more than a slab gives each message memory of its own', () => {
  const envelopes = new EnvelopeEncoder(1, 0, { before: 1 << 18, behind: 2 });
  const [first, second] = [1, 2].map(() => envelopes.encode(removedBatch(1), 0, 1, 0));
  expect(first?.slab).not.toBe(second?.slab);
  expect(second?.slabStart).toBe(0);
  expect(first?.envelope.byteOffset).toBeGreaterThan(1 << 18);
});
