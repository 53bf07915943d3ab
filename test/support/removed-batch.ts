/** A batch of one remove, encoded: as long as it has hashes; and the message that it makes. */
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import type { EnvelopeEncoder, PlaneMessage } from '../../src/protocol/envelope.ts';
import { type RouterBatch, RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { removed } from './placements.ts';

const encoder = new RouterEventEncoder(7n);

export function removedBatch(hashes: number): RouterBatch {
  const encoded = new EncodeBuffer();
  const event = removed(Array.from({ length: hashes }, (_, index) => BigInt(index)));
  encoder.encode(encoded, event, 1);
  return { events: [event], firstEventId: 1, encoded, ends: [encoded.length] };
}

/** The next message of these envelopes. */
export function removedMessage(envelopes: EnvelopeEncoder, hashes: number): PlaneMessage {
  const batch = removedBatch(hashes);
  const message = envelopes.encode(batch, 0, 1, 0);
  batch.encoded.free();
  return message;
}
