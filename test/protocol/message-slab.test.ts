/** Memory of messages: it is used again, and never while one of its messages may still be sent. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import { EnvelopeEncoder, type PlaneMessage } from '../../src/protocol/envelope.ts';
import { type RouterBatch, RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { Outbox } from '../../src/sinks/outbox.ts';
import { removed } from '../support/placements.ts';
import { fixedSeed } from '../support/properties.ts';

const encoder = new RouterEventEncoder(7n);

function batchOf(hashes: number): RouterBatch {
  const encoded = new EncodeBuffer();
  const event = removed(Array.from({ length: hashes }, (_, index) => BigInt(index)));
  encoder.encode(encoded, event, 1);
  return { events: [event], firstEventId: 1, encoded, ends: [encoded.length] };
}

/** Messages of about 10 KiB, three to a slab. */
const batch = batchOf(3300);

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
  fc.assert(
    fc.property(steps, (histories) => {
      const envelopes = new EnvelopeEncoder(1);
      const outbox = new Outbox(400_000);
      const copies = new Map<number, { envelope: Buffer; copy: Buffer }>();
      let confirmed = -1;
      for (const { hashes, sends, confirms } of histories) {
        const message: PlaneMessage = envelopes.encode(batchOf(hashes), 0, 1, 0);
        copies.set(message.sequence, {
          envelope: message.envelope,
          copy: Buffer.from(message.envelope),
        });
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
