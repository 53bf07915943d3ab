import { unpack } from 'msgpackr';
import { expect, test } from 'vitest';
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import { EnvelopeEncoder, messageEnds } from '../../src/protocol/envelope.ts';
import type { PlacementEvent } from '../../src/protocol/placement-event.ts';
import { type RouterBatch, RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { removed, stored } from '../support/placements.ts';
import { readJsonLines } from '../support/vectors.ts';

interface EnvelopeVector {
  publisher_id: string;
  sequence: number;
  published_at: number;
  payload?: string;
  envelope?: string;
  envelope_head?: string;
  payload_len?: number;
}

/** A batch whose single event has these bytes, whatever they are. */
function batchOf(payload: Buffer, headerBytes: number, count: number): RouterBatch {
  const encoded = new EncodeBuffer();
  encoded.putBytes(payload.subarray(headerBytes));
  const bytes = payload.length - headerBytes;
  return {
    encoded,
    firstEventId: 1,
    events: new Array<PlacementEvent>(count).fill(removed([1n])),
    ends: new Array<number>(count).fill(bytes),
  };
}

test.each(readJsonLines<EnvelopeVector>('dynamo/envelope.jsonl'))(
  'the envelope of message $sequence is that of the real publisher',
  (vector) => {
    const payload = Buffer.from(vector.payload ?? '', 'hex');
    if (vector.envelope === undefined) {
      // Only the head of a large message was captured: everything before the payload's bytes.
      const length = vector.payload_len ?? 0;
      const batch = batchOf(Buffer.alloc(length), 1, 1);
      const head = Buffer.from(vector.envelope_head ?? '', 'hex');
      const envelope = encode(vector, batch);
      expect(envelope.subarray(0, head.length).toString('hex')).toBe(vector.envelope_head);
      expect(envelope).toHaveLength(head.length + length);
      return;
    }
    const marker = payload[0] as number;
    const [headerBytes, count] = marker === 0xdc ? [3, payload.readUInt16BE(1)] : [1, marker & 15];
    const envelope = encode(vector, batchOf(payload, headerBytes, count));
    expect(envelope.toString('hex')).toBe(vector.envelope);
  },
);

function encode(vector: EnvelopeVector, batch: RouterBatch): Buffer {
  const encoder = new EnvelopeEncoder(Number(vector.publisher_id), vector.sequence);
  return encoder.encode(batch, 0, batch.events.length, vector.published_at).envelope;
}

test('H6: no integer leaves as a float, however large ids, sequence and time are', () => {
  const encoded = new EncodeBuffer();
  const placement = stored(2n ** 63n, [2n ** 64n - 1n, 2n ** 53n + 1n]);
  const eventId = 2 ** 40 + 1;
  new RouterEventEncoder(2n ** 40n + 1n).encode(encoded, placement, eventId);
  const encoder = new EnvelopeEncoder(2 ** 53 - 1, 2 ** 33);
  const { envelope } = encoder.encode(
    { encoded, events: [placement], firstEventId: eventId, ends: [encoded.length] },
    0,
    1,
    1_796_013_837_860,
  );
  expect(unpack(envelope)).toMatchObject({
    publisher_id: 2n ** 53n - 1n,
    sequence: 2n ** 33n,
    published_at: 1_796_013_837_860n,
  });
  const { payload } = unpack(envelope) as { payload: Buffer };
  const [event] = unpack(payload) as [
    { worker_id: bigint; event: { event_id: bigint; data: { stored: { blocks: unknown[] } } } },
  ];
  expect(event.worker_id).toBe(2n ** 40n + 1n);
  expect(event.event.event_id).toBe(2n ** 40n + 1n);
  expect(event.event.data.stored).toMatchObject({
    parent_hash: 2n ** 63n,
    blocks: [{ block_hash: 2n ** 64n - 1n }, { block_hash: 2n ** 53n + 1n }],
  });
});

test('a list is cut at 128 events and 8192 blocks; an event with more travels alone', () => {
  const sizes = (...blockCounts: number[]): number[] => {
    const events = blockCounts.map((count) => removed(new Array<bigint>(count).fill(1n)));
    const cuts = messageEnds({ events, ends: new Array<number>(events.length).fill(0) });
    return cuts.map((end, index) => end - (cuts[index - 1] ?? 0));
  };
  expect(sizes(...new Array<number>(300).fill(1))).toEqual([128, 128, 44]);
  expect(sizes(3000, 3000, 3000, 3000, 3000)).toEqual([2, 2, 1]);
  expect(sizes(9000, 1)).toEqual([1, 1]);
  expect(sizes(1, 9000, 1)).toEqual([1, 1, 1]);
  expect(sizes(8191, 1, 1)).toEqual([2, 1]);
  expect(sizes()).toEqual([]);
});
