/** Messages in the shape of the ZMQ plane: which frames leave, and from where. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameReader } from '../../src/connections/zmtp/frame-reader.ts';
import { EnvelopeEncoder } from '../../src/protocol/envelope.ts';
import { type MessageRoom, NO_ROOM } from '../../src/protocol/message-slab.ts';
import { ZmqFrames } from '../../src/sinks/zmq-frames.ts';
import { fixedSeed } from '../support/properties.ts';
import { removedMessage } from '../support/removed-batch.ts';

/** Messages of four frames as a subscriber reads them. */
function read(bytes: Buffer): Buffer[][] {
  const reader = new FrameReader(1 << 24);
  const found: Buffer[][] = [];
  for (let at = 0; at < bytes.length; ) {
    const byteCount = bytes.copy(reader.room(), 0, at);
    reader.add(byteCount);
    at += byteCount;
    while (reader.next() === 'message' && reader.message !== null) {
      const { slab, frameCount, wireBytes, ...of } = reader.message;
      expect(frameCount).toBe(4);
      const three = [
        [of.firstAt, of.firstLength],
        [of.secondAt, of.secondLength],
        [of.thirdAt, of.thirdLength],
      ].map(([from = 0, length = 0]) => Buffer.from(slab.bytes.subarray(from, from + length)));
      const lastAt = of.thirdAt + of.thirdLength;
      const length = slab.bytes.readBigUInt64BE(lastAt + 1);
      const last = slab.bytes.subarray(lastAt + 9, lastAt + 9 + Number(length));
      expect(lastAt + 9 + Number(length) - of.firstAt).toBeLessThanOrEqual(wireBytes);
      found.push([...three, Buffer.from(last)]);
    }
  }
  return found;
}

test('whatever the messages and the topic, a subscriber reads topic, publisher, number, envelope', () => {
  const message = fc.record({
    hashes: fc.oneof(fc.nat(200), fc.nat(60_000)),
    hasSlab: fc.boolean(),
  });
  const topic = fc.constantFrom('kv-events', '', 'ü.é', 'x'.repeat(255), 'y'.repeat(300));
  const publisher = fc.maxSafeNat();
  const first = fc.maxSafeNat();
  const rooms = fc.constantFrom<(MessageRoom | undefined)[]>(undefined, NO_ROOM, {
    before: 500,
    behind: 3,
  });
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 30 }),
      topic,
      publisher,
      first,
      rooms,
      (messages, name, publisherId, firstSequence, room) => {
        const frames = new ZmqFrames(name, publisherId);
        const envelopes = new EnvelopeEncoder(publisherId, firstSequence, room ?? frames.room);
        const encoded = messages.map(({ hashes, hasSlab }) => {
          const one = removedMessage(envelopes, hashes);
          return hasSlab ? one : { ...one, slab: null };
        });
        const copies = encoded.map(({ envelope }) => Buffer.from(envelope));
        const found = read(Buffer.concat(encoded.flatMap((one) => frames.pieces(one))));
        expect(found.length).toBe(encoded.length);
        for (const [at, [ofTopic, id, sequence, last]] of found.entries()) {
          expect(ofTopic?.toString()).toBe(name);
          expect(id?.readBigUInt64BE()).toBe(BigInt(publisherId));
          expect(sequence?.readBigUInt64BE()).toBe(BigInt(encoded[at]?.sequence ?? -1));
          expect([last?.[0], last?.readUInt32BE(1)]).toEqual([1, copies[at]?.length]);
          expect(last?.subarray(5).equals(copies[at] as Buffer)).toBe(true);
        }
      },
    ),
    fixedSeed,
  );
});

test('a message with room leaves from the memory it lies in; one without has the head in front', () => {
  const frames = new ZmqFrames('kv-events', 7);
  const roomy = removedMessage(new EnvelopeEncoder(7, 0, frames.room), 3);
  const [piece, ...more] = frames.pieces(roomy) as [Buffer];
  expect(more).toEqual([]);
  expect(piece.buffer).toBe(roomy.envelope.buffer);
  expect(piece.byteOffset + piece.length).toBe(roomy.envelope.byteOffset + roomy.envelope.length);
  const tight = removedMessage(new EnvelopeEncoder(7), 3);
  const [head, envelope] = frames.pieces(tight) as [Buffer, Buffer];
  expect(envelope).toBe(tight.envelope);
  expect(head.buffer).not.toBe(tight.envelope.buffer);
});

test('what a message does not have for itself is not written to', () => {
  const frames = new ZmqFrames('kv-events', 7);
  const envelopes = new EnvelopeEncoder(7, 0, frames.room);
  const before = removedMessage(envelopes, 3);
  const copy = Buffer.from(before.envelope);
  const behind = removedMessage(envelopes, 3);
  expect(behind.slab).toBe(before.slab);
  frames.pieces({ ...behind, slabStart: behind.envelope.byteOffset });
  frames.pieces(behind);
  expect(before.envelope.equals(copy)).toBe(true);
});
