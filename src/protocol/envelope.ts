/**
 * Envelope: the message that carries a list of router events on an event plane.
 *
 * envelope  publisher_id u64, sequence u64 (from 0, +1 a message), published_at u64 (Unix ms),
 *           topic str, payload bin
 * payload   array of router events
 *
 * Source  ai-dynamo/dynamo 1.6.1; the same on NATS (whole body) and on the ZMQ plane (last frame).
 */
import { MAX_SHARED_BYTES, type MessageRoom, MessageSlab, NO_ROOM } from './message-slab.ts';
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
  /** Where the envelope lies with others; who is the last to need it may give it back. Absent: it has its own. */
  readonly slab?: MessageSlab | null;
  /**
   * The part of the slab that is this message's alone, in bytes: the envelope, at least the room before and exactly the
   * room behind it. The next message of the slab starts where this one ends.
   */
  readonly slabStart?: number;
  readonly slabEnd?: number;
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

function unsignedBytes(value: number): number {
  if (value < 0x80) return 1;
  if (value < 2 ** 8) return 2;
  if (value < 2 ** 16) return 3;
  return value < 2 ** 32 ? 5 : 9;
}

function putBinHeader(buffer: Buffer, at: number, length: number): number {
  if (length < 2 ** 8) return putNumber(buffer, at, 0xc4, 1, length);
  if (length < 2 ** 16) return putNumber(buffer, at, 0xc5, 2, length);
  return putNumber(buffer, at, 0xc6, 4, length);
}

function binHeaderBytes(length: number): number {
  if (length < 2 ** 8) return 2;
  return length < 2 ** 16 ? 3 : 5;
}

/**
 * Writes the envelopes of one publisher and counts them.
 *
 * Open  a message whose events are still being added has no number yet; its head is written when it closes.
 */
export class EnvelopeEncoder {
  /** Up to the sequence number. */
  readonly #head: Buffer;
  readonly #room: MessageRoom;
  #nextSequence: number;
  #slab: MessageSlab | null = null;
  /** Up to the end of the last message that was closed. */
  #slabUsed = 0;
  /** Of the open message: where its events begin and end in the slab, how many they are, and their blocks. */
  #bodyStart = 0;
  #bodyEnd = 0;
  #openEvents = 0;
  #openBlocks = 0;

  constructor(publisherId: number, firstSequence = 0, room: MessageRoom = NO_ROOM) {
    const head = Buffer.alloc(MAX_ENVELOPE_HEAD_BYTES);
    head[0] = 0x85;
    let at = putBytes(head, 1, constant('publisher_id'));
    at = putUnsigned(head, at, publisherId);
    this.#head = head.subarray(0, putBytes(head, at, SEQUENCE));
    this.#room = room;
    this.#nextSequence = firstSequence;
  }

  /** Events of the open message; 0: there is none. */
  get openEvents(): number {
    return this.#openEvents;
  }

  /** A message of consecutive events of a batch, with the next sequence number. None may be open. */
  encode(batch: RouterBatch, first: number, end: number, publishedAtMs: number): PlaneMessage {
    const bytes = bytesOf(batch, first, end);
    this.#open(bytes.length);
    this.#add(bytes, end - first);
    return this.close(publishedAtMs);
  }

  /**
   * Adds a whole batch to the open message, or to a new one. False, and nothing done, where that would be more than a
   * message may have, over `maxBytes`, or take memory of its own.
   */
  append(batch: RouterBatch, maxBytes: number): boolean {
    const { events } = batch;
    let blocks = 0;
    for (const { blockCount } of events) blocks += blockCount;
    if (this.#openEvents + events.length > MAX_MESSAGE_EVENTS) return false;
    if (this.#openBlocks + blocks > MAX_MESSAGE_BLOCKS) return false;
    const bytes = bytesOf(batch, 0, events.length);
    const room = Math.min(maxBytes - MAX_ENVELOPE_HEAD_BYTES, MAX_SHARED_BYTES);
    const openBytes = this.#openEvents === 0 ? 0 : this.#bodyEnd - this.#bodyStart;
    if (openBytes + bytes.length > room) return false;
    if (this.#openEvents === 0) this.#open(MAX_SHARED_BYTES);
    this.#add(bytes, events.length);
    this.#openBlocks += blocks;
    return true;
  }

  /** The open message, with the next sequence number. */
  close(publishedAtMs: number): PlaneMessage {
    const sequence = this.#nextSequence++;
    const eventCount = this.#openEvents;
    const slab = this.#slab as MessageSlab;
    const { buffer } = slab;
    const payloadBytes = this.#bodyEnd - this.#bodyStart + (eventCount < 16 ? 1 : 3);
    const from =
      this.#bodyEnd -
      payloadBytes -
      binHeaderBytes(payloadBytes) -
      TOPIC_AND_PAYLOAD.length -
      unsignedBytes(publishedAtMs) -
      PUBLISHED_AT.length -
      unsignedBytes(sequence) -
      this.#head.length;
    let at = putUnsigned(buffer, putBytes(buffer, from, this.#head), sequence);
    at = putUnsigned(buffer, putBytes(buffer, at, PUBLISHED_AT), publishedAtMs);
    at = putBytes(buffer, at, TOPIC_AND_PAYLOAD);
    at = putBinHeader(buffer, at, payloadBytes);
    if (eventCount < 16) putNumber(buffer, at, 0x90 | eventCount, 0, 0);
    else putNumber(buffer, at, 0xdc, 2, eventCount);
    const envelope = buffer.subarray(from, this.#bodyEnd);
    const slabStart = this.#slabUsed;
    const slabEnd = this.#bodyEnd + this.#room.behind;
    this.#slabUsed = slabEnd;
    this.#openEvents = 0;
    this.#openBlocks = 0;
    slab.messages++;
    return { sequence, eventCount, envelope, slab, slabStart, slabEnd };
  }

  /** Room for a message of `bytes` behind what the slab holds already. */
  #open(bytes: number): void {
    const start = this.#room.before + MAX_ENVELOPE_HEAD_BYTES;
    const needed = start + bytes + this.#room.behind;
    const slab = this.#slab;
    if (slab === null || this.#slabUsed + needed > slab.buffer.length) {
      slab?.retire();
      this.#slab = bytes > MAX_SHARED_BYTES ? MessageSlab.ofOne(needed) : MessageSlab.take(needed);
      this.#slabUsed = 0;
    }
    this.#bodyStart = this.#slabUsed + start;
    this.#bodyEnd = this.#bodyStart;
  }

  #add(bytes: Uint8Array, eventCount: number): void {
    this.#slab?.buffer.set(bytes, this.#bodyEnd);
    this.#bodyEnd += bytes.length;
    this.#openEvents += eventCount;
  }
}

/** What stands in the kernel of consecutive events of a batch; it ends with the kernel's next write. */
function bytesOf(batch: RouterBatch, first: number, end: number): Uint8Array {
  const start = first === 0 ? 0 : (batch.ends[first - 1] as number);
  return batch.encoded.bytes(start, batch.ends[end - 1] as number);
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
