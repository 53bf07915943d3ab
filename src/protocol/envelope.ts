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
  readonly eventCount: number;
  readonly envelope: Buffer;
}

/** Most that an envelope has around its payload's events. */
export const MAX_ENVELOPE_HEAD_BYTES = 96;

/** Bytes that the envelopes of a publisher have in common. */
function constant(text: string): Buffer {
  return Buffer.concat([Buffer.from([0xa0 | text.length]), Buffer.from(text, 'latin1')]);
}
const SEQUENCE = constant('sequence');
const PUBLISHED_AT = constant('published_at');
const TOPIC_AND_PAYLOAD = Buffer.concat(['topic', KV_EVENTS_TOPIC, 'payload'].map(constant));

/** So short that a loop beats the call of a copy. */
function putBytes(buffer: Buffer, at: number, bytes: Uint8Array): number {
  for (let index = 0; index < bytes.length; index++) buffer[at + index] = bytes[index] as number;
  return at + bytes.length;
}

/** `value` in `width` bytes, big-endian, behind its marker. */
function putNumber(
  buffer: Buffer,
  at: number,
  marker: number,
  width: number,
  value: number,
): number {
  buffer[at] = marker;
  let rest = value;
  for (let index = width; index > 0; index--) {
    buffer[at + index] = rest & 0xff;
    rest = Math.floor(rest / 256);
  }
  return at + 1 + width;
}

/** An unsigned integer of up to 2^53 in its smallest form. */
function putUnsigned(buffer: Buffer, at: number, value: number): number {
  if (value < 0x80) return putNumber(buffer, at, value, 0, 0);
  if (value < 2 ** 8) return putNumber(buffer, at, 0xcc, 1, value);
  if (value < 2 ** 16) return putNumber(buffer, at, 0xcd, 2, value);
  if (value < 2 ** 32) return putNumber(buffer, at, 0xce, 4, value);
  return putNumber(buffer, at, 0xcf, 8, value);
}

function putBinHeader(buffer: Buffer, at: number, length: number): number {
  if (length < 2 ** 8) return putNumber(buffer, at, 0xc4, 1, length);
  if (length < 2 ** 16) return putNumber(buffer, at, 0xc5, 2, length);
  return putNumber(buffer, at, 0xc6, 4, length);
}

/** Memory that messages are cut from: one allocation for many of them. */
const SLAB_BYTES = 1 << 16;

/** A larger message has memory of its own, so that a slab is never held by a few bytes for long. */
const MAX_SHARED_BYTES = SLAB_BYTES >>> 2;

/** Writes the envelopes of one publisher and counts them. */
export class EnvelopeEncoder {
  /** Up to the sequence number. */
  readonly #head: Buffer;
  #nextSequence: number;
  #slab: Buffer = Buffer.alloc(0);
  #slabUsed = 0;

  constructor(publisherId: number, firstSequence = 0) {
    const head = Buffer.alloc(MAX_ENVELOPE_HEAD_BYTES);
    head[0] = 0x85;
    let at = putBytes(head, 1, constant('publisher_id'));
    at = putUnsigned(head, at, publisherId);
    this.#head = head.subarray(0, putBytes(head, at, SEQUENCE));
    this.#nextSequence = firstSequence;
  }

  /** A message of consecutive events of a batch, with the next sequence number. */
  encode(batch: RouterBatch, first: number, end: number, publishedAtMs: number): PlaneMessage {
    const start = first === 0 ? 0 : (batch.ends[first - 1] as number);
    const bytes = batch.encoded.bytes(start, batch.ends[end - 1] as number);
    const count = end - first;
    const sequence = this.#nextSequence++;
    const buffer = this.#room(MAX_ENVELOPE_HEAD_BYTES + bytes.length);
    const from = this.#slabUsed;
    let at = putUnsigned(buffer, putBytes(buffer, from, this.#head), sequence);
    at = putUnsigned(buffer, putBytes(buffer, at, PUBLISHED_AT), publishedAtMs);
    at = putBytes(buffer, at, TOPIC_AND_PAYLOAD);
    at = putBinHeader(buffer, at, bytes.length + (count < 16 ? 1 : 3));
    if (count < 16) at = putNumber(buffer, at, 0x90 | count, 0, 0);
    else at = putNumber(buffer, at, 0xdc, 2, count);
    buffer.set(bytes, at);
    this.#slabUsed = at + bytes.length;
    return { sequence, eventCount: count, envelope: buffer.subarray(from, this.#slabUsed) };
  }

  /** A buffer with room for `bytes` from `#slabUsed` on. */
  #room(bytes: number): Buffer {
    if (this.#slabUsed + bytes > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(bytes > MAX_SHARED_BYTES ? bytes : SLAB_BYTES);
      this.#slabUsed = 0;
    }
    return this.#slab;
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
