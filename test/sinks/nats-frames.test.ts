/** Messages in the shape of NATS's protocol: which bytes leave, in how many writes, and from where. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EnvelopeEncoder, type PlaneMessage } from '../../src/protocol/envelope.ts';
import { type MessageRoom, NO_ROOM } from '../../src/protocol/message-slab.ts';
import { NatsFrames } from '../../src/sinks/nats-frames.ts';
import { publicationsIn } from '../support/nats-publications.ts';
import { fixedSeed } from '../support/properties.ts';
import { removedMessage } from '../support/removed-batch.ts';

/** Frames for a subject, and what they write. */
class Rig {
  readonly writes: Uint8Array[] = [];
  readonly frames: NatsFrames;
  readonly envelopes: EnvelopeEncoder;

  constructor(subject = 'blocks', room?: MessageRoom) {
    this.frames = new NatsFrames(subject, (bytes) => this.writes.push(bytes));
    this.envelopes = new EnvelopeEncoder(1, 0, room ?? this.frames.room);
  }

  send(...messages: PlaneMessage[]): void {
    for (const message of messages) this.frames.add(message);
    this.frames.flush();
  }
}

test('a frame says subject and length, and ends with its line', () => {
  const rig = new Rig();
  const message = removedMessage(rig.envelopes, 3);
  rig.send(message);
  const text = Buffer.from(rig.writes[0] as Uint8Array).toString('latin1');
  const { length } = message.envelope;
  expect(text).toMatch(new RegExp(`^PUB +blocks ${length}\\r\\n`));
  expect(text.endsWith(`\r\n${message.envelope.toString('latin1')}\r\n`)).toBe(true);
});

test('whatever the messages and the subject, a server reads the envelopes, in order', () => {
  const message = fc.record({
    hashes: fc.oneof(fc.nat(200), fc.nat(60_000)),
    hasSlab: fc.boolean(),
    isFlushed: fc.boolean(),
  });
  const subject = fc.constantFrom('a', 'ü.é', 'x'.repeat(70), 'y'.repeat(300));
  const rooms = fc.constantFrom(
    undefined,
    NO_ROOM,
    { before: 0, behind: 2 },
    { before: 500, behind: 3 },
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 30 }), subject, rooms, (messages, name, room) => {
      const rig = new Rig(name, room);
      const envelopes: Buffer[] = [];
      for (const { hashes, hasSlab, isFlushed } of messages) {
        const encoded = removedMessage(rig.envelopes, hashes);
        envelopes.push(Buffer.from(encoded.envelope));
        rig.frames.add(hasSlab ? encoded : { ...encoded, slab: null });
        if (isFlushed) rig.frames.flush();
      }
      rig.frames.flush();
      const found = rig.writes.flatMap(publicationsIn);
      expect(found.every(({ subject: of }) => of === name)).toBe(true);
      expect(found.length).toBe(envelopes.length);
      expect(found.every((one, at) => envelopes[at]?.equals(one.message))).toBe(true);
    }),
    fixedSeed,
  );
});

test('messages that lie side by side are one write, of the memory they lie in', () => {
  const rig = new Rig();
  const messages = [1, 50, 3].map((hashes) => removedMessage(rig.envelopes, hashes));
  rig.send(...messages);
  expect(rig.writes).toHaveLength(1);
  const [{ buffer, byteOffset, length }] = rig.writes as [Uint8Array];
  expect(buffer).toBe(messages[0]?.slab?.buffer.buffer);
  expect([byteOffset, byteOffset + length]).toEqual([messages[0]?.slabStart, messages[2]?.slabEnd]);
});

test('a gap, another slab and memory of its own each begin another write', () => {
  const rig = new Rig();
  const [first, , third, large, small] = [1, 2, 3, 60_000, 1].map((hashes) =>
    removedMessage(rig.envelopes, hashes),
  ) as [PlaneMessage, PlaneMessage, PlaneMessage, PlaneMessage, PlaneMessage];
  rig.send(first, third, large, small, { ...small, slab: null });
  const found = rig.writes.map((bytes) => publicationsIn(bytes).map(({ message }) => message));
  expect(found).toEqual([first, third, large, small, small].map(({ envelope }) => [envelope]));
});

test('a message that is sent again has the bytes it had', () => {
  const rig = new Rig();
  const messages = [1, 50, 3].map((hashes) => removedMessage(rig.envelopes, hashes));
  rig.send(...messages);
  const before = Buffer.from(rig.writes[0] as Uint8Array);
  rig.send(...messages.slice(1));
  expect(Buffer.from(rig.writes[0] as Uint8Array).equals(before)).toBe(true);
  const again = publicationsIn(rig.writes[1] as Uint8Array);
  expect(again).toEqual(publicationsIn(before).slice(1));
});

test('nothing gathered, nothing written', () => {
  const rig = new Rig();
  rig.frames.flush();
  rig.send(removedMessage(rig.envelopes, 1));
  rig.frames.flush();
  expect(rig.writes).toHaveLength(1);
});
