/**
 * Envelope: the message that carries a list of router events on an event plane.
 *
 * envelope  publisher_id u64, sequence u64 (from 0, +1 a message), published_at u64 (Unix ms),
 *           topic str, payload bin
 * payload   array of router events
 *
 * Source  ai-dynamo/dynamo 1.6.1; the same on NATS (whole body) and on the ZMQ plane (last frame).
 */
import type { PlacementEvent } from './placement-event.ts';
import type { RouterBatch } from './router-event.ts';

export const KV_EVENTS_TOPIC = 'kv-events';

/** Most events and blocks of one message; an event with more blocks travels alone. */
const MAX_MESSAGE_EVENTS = 128;
const MAX_MESSAGE_BLOCKS = 8192;

/** One message, ready for a plane. */
export interface PlaneMessage {
  readonly sequence: number;
  readonly envelope: Buffer;
}

/** Most that an envelope has around its payload's events. */
export const MAX_ENVELOPE_HEAD_BYTES = 96;

function put(buffer: Buffer, at: number, text: string): number {
  buffer[at] = 0xa0 | text.length;
  return at + 1 + buffer.write(text, at + 1, 'latin1');
}

/** An unsigned integer of up to 2^53 in its smallest form. */
function putUnsigned(buffer: Buffer, at: number, value: number): number {
  if (value < 0x80) return buffer.writeUInt8(value, at);
  if (value < 2 ** 8) return buffer.writeUInt8(value, buffer.writeUInt8(0xcc, at));
  if (value < 2 ** 16) return buffer.writeUInt16BE(value, buffer.writeUInt8(0xcd, at));
  if (value < 2 ** 32) return buffer.writeUInt32BE(value, buffer.writeUInt8(0xce, at));
  const next = buffer.writeUInt32BE(Math.floor(value / 2 ** 32), buffer.writeUInt8(0xcf, at));
  return buffer.writeUInt32BE(value >>> 0, next);
}

function putBinHeader(buffer: Buffer, at: number, length: number): number {
  if (length < 2 ** 8) return buffer.writeUInt8(length, buffer.writeUInt8(0xc4, at));
  if (length < 2 ** 16) return buffer.writeUInt16BE(length, buffer.writeUInt8(0xc5, at));
  return buffer.writeUInt32BE(length, buffer.writeUInt8(0xc6, at));
}

function putArrayHeader(buffer: Buffer, at: number, count: number): number {
  if (count < 16) return buffer.writeUInt8(0x90 | count, at);
  return buffer.writeUInt16BE(count, buffer.writeUInt8(0xdc, at));
}

/** Writes the envelopes of one publisher and counts them. */
export class EnvelopeEncoder {
  readonly #publisherId: number;
  #nextSequence: number;

  constructor(publisherId: number, firstSequence = 0) {
    this.#publisherId = publisherId;
    this.#nextSequence = firstSequence;
  }

  /** A message of consecutive events of a batch, with the next sequence number. */
  encode(batch: RouterBatch, first: number, end: number, publishedAtMs: number): PlaneMessage {
    const start = first === 0 ? 0 : (batch.ends[first - 1] as number);
    const bytes = batch.encoded.bytes(start, batch.ends[end - 1] as number);
    const count = end - first;
    const sequence = this.#nextSequence++;
    const envelope = Buffer.allocUnsafe(MAX_ENVELOPE_HEAD_BYTES + bytes.length);
    let at = envelope.writeUInt8(0x85, 0);
    at = putUnsigned(envelope, put(envelope, at, 'publisher_id'), this.#publisherId);
    at = putUnsigned(envelope, put(envelope, at, 'sequence'), sequence);
    at = putUnsigned(envelope, put(envelope, at, 'published_at'), publishedAtMs);
    at = put(envelope, put(envelope, at, 'topic'), KV_EVENTS_TOPIC);
    const headerBytes = count < 16 ? 1 : 3;
    at = putBinHeader(envelope, put(envelope, at, 'payload'), headerBytes + bytes.length);
    at = putArrayHeader(envelope, at, count);
    envelope.set(bytes, at);
    return { sequence, envelope: envelope.subarray(0, at + bytes.length) };
  }
}

/** Ends of the messages that a batch is cut into, in order, each of at most `maxMessageBytes`. */
export function messageEnds(
  { events, ends }: Pick<RouterBatch, 'events' | 'ends'>,
  maxMessageBytes: number = Number.POSITIVE_INFINITY,
): number[] {
  const maxEventBytes = maxMessageBytes - MAX_ENVELOPE_HEAD_BYTES;
  const cuts: number[] = [];
  let first = 0;
  let startBytes = 0;
  let blocks = 0;
  for (let index = 0; index < events.length; index++) {
    const { blockCount } = events[index] as PlacementEvent;
    const isFull =
      index - first === MAX_MESSAGE_EVENTS ||
      blocks + blockCount > MAX_MESSAGE_BLOCKS ||
      (ends[index] as number) - startBytes > maxEventBytes;
    if (index > first && isFull) {
      cuts.push(index);
      first = index;
      startBytes = ends[index - 1] as number;
      blocks = 0;
    }
    blocks += blockCount;
  }
  if (events.length > first) cuts.push(events.length);
  return cuts;
}
