/** A batch of one remove, encoded: as long as it has hashes. */
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import { type RouterBatch, RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { removed } from './placements.ts';

const encoder = new RouterEventEncoder(7n);

export function removedBatch(hashes: number): RouterBatch {
  const encoded = new EncodeBuffer();
  const event = removed(Array.from({ length: hashes }, (_, index) => BigInt(index)));
  encoder.encode(encoded, event, 1);
  return { events: [event], firstEventId: 1, encoded, ends: [encoded.length] };
}
