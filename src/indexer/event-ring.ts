/**
 * EventRing: the newest router events with their bytes, ids without a hole.
 *
 * Bounds   `maxEvents` and `maxBytes`, whichever is reached first; the oldest go. One event over `maxBytes`
 *          leaves the ring empty.
 * Owns     their bytes, in segments, of which the oldest is used again once nothing in it is kept, and a ring of their
 *          places: no object an event. One piece that grew would be copied, and hold up a batch for milliseconds.
 */
import type { RouterBatch } from '../protocol/router-event.ts';

export interface EventRingOptions {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

const SEGMENT_BYTES = 1 << 20;

export class EventRing {
  readonly #maxBytes: number;
  /** One after the other, the first one being the `#firstSegment`th since the first event. */
  readonly #segments: Uint8Array[] = [];
  #firstSegment = 0;
  /** Where an event begins, counted in bytes since the first; slot: its id modulo the length. */
  readonly #begins: Float64Array;
  #end = 0;
  #firstEventId = 1;
  #nextEventId = 1;

  constructor({ maxEvents, maxBytes }: EventRingOptions) {
    this.#maxBytes = maxBytes;
    this.#begins = new Float64Array(maxEvents);
  }

  /** Id of the oldest event that is here; the next one's where there is none. */
  get firstEventId(): number {
    return this.#firstEventId;
  }

  /** Id of the newest event; 0 before the first. */
  get lastEventId(): number {
    return this.#nextEventId - 1;
  }

  get isEmpty(): boolean {
    return this.#firstEventId === this.#nextEventId;
  }

  /** Events that are here. */
  get eventCount(): number {
    return this.#nextEventId - this.#firstEventId;
  }

  /** Bytes of these. */
  get byteCount(): number {
    return this.isEmpty ? 0 : this.#end - this.#beginOf(this.#firstEventId);
  }

  /** Gives up all events; the next one has id 1. */
  restart(): void {
    this.#restartAt(1);
  }

  push({ encoded, ends, firstEventId }: RouterBatch): void {
    if (firstEventId !== this.#nextEventId) this.#restartAt(firstEventId);
    const bytes = encoded.bytes(0, encoded.length);
    if (bytes.length <= this.#maxBytes) {
      this.#pushAll(bytes, ends);
      return;
    }
    let start = 0;
    for (const end of ends) {
      if (end - start > this.#maxBytes) this.#restartAt(this.#nextEventId + 1);
      else this.#pushAll(bytes.subarray(start, end), [end - start]);
      start = end;
    }
  }

  /** The events from `eventId` on, their bytes one after the other; it must be here, or the next id. */
  copyFrom(eventId: number): Uint8Array {
    if (eventId === this.#nextEventId) return new Uint8Array(0);
    return this.#copy(this.#beginOf(eventId), this.#end);
  }

  /** Up to `maxEvents` events from `eventId` on, as many as fit `maxCopied` bytes, but at least one. */
  copySome(eventId: number, maxEvents: number, maxCopied: number): Uint8Array[] {
    const events: Uint8Array[] = [];
    let room = maxCopied;
    for (let id = eventId; id < this.#nextEventId && events.length < maxEvents; id++) {
      const begin = this.#beginOf(id);
      const end = id + 1 === this.#nextEventId ? this.#end : this.#beginOf(id + 1);
      room -= end - begin;
      if (room < 0 && events.length > 0) break;
      events.push(this.#copy(begin, end));
    }
    return events;
  }

  #restartAt(eventId: number): void {
    this.#firstEventId = eventId;
    this.#nextEventId = eventId;
  }

  /** Events that fit the ring together, in one copy. */
  #pushAll(bytes: Uint8Array, ends: readonly number[]): void {
    const { length } = bytes;
    this.#makeRoomForBytes(length);
    this.#eachPart(this.#end, length, (segment, offset, from, count) => {
      segment.set(count === length ? bytes : bytes.subarray(from, from + count), offset);
    });
    const begins = this.#begins;
    let slot = this.#nextEventId % begins.length;
    let begin = this.#end;
    for (let index = 0; index < ends.length; index++) {
      begins[slot] = begin;
      begin = this.#end + (ends[index] as number);
      if (++slot === begins.length) slot = 0;
    }
    this.#nextEventId += ends.length;
    this.#firstEventId = Math.max(this.#firstEventId, this.#nextEventId - begins.length);
    this.#end = begin;
  }

  /** The oldest events go, as many as it takes. */
  #makeRoomForBytes(length: number): void {
    const oldestBegin = this.#end + length - this.#maxBytes;
    const begins = this.#begins;
    let first = this.#firstEventId;
    let slot = first % begins.length;
    while (first < this.#nextEventId && (begins[slot] as number) < oldestBegin) {
      first++;
      if (++slot === begins.length) slot = 0;
    }
    this.#firstEventId = first;
  }

  #beginOf(eventId: number): number {
    return this.#begins[eventId % this.#begins.length] as number;
  }

  #copy(begin: number, end: number): Uint8Array {
    const copy = new Uint8Array(end - begin);
    this.#eachPart(begin, copy.length, (segment, offset, from, count) => {
      copy.set(segment.subarray(offset, offset + count), from);
    });
    return copy;
  }

  /** Calls `use` with each segment that has a part of `length` bytes from `begin` on, and which part that is. */
  #eachPart(
    begin: number,
    length: number,
    use: (segment: Uint8Array, offset: number, from: number, count: number) => void,
  ): void {
    for (let from = 0; from < length; ) {
      const offset = (begin + from) % SEGMENT_BYTES;
      const count = Math.min(length - from, SEGMENT_BYTES - offset);
      use(this.#segmentAt(begin + from), offset, from, count);
      from += count;
    }
  }

  #segmentAt(at: number): Uint8Array {
    const number = Math.floor(at / SEGMENT_BYTES);
    const isNew = number === this.#firstSegment + this.#segments.length;
    if (isNew) this.#segments.push(this.#takeSegment());
    return this.#segments[number - this.#firstSegment] as Uint8Array;
  }

  /** The oldest, where all in it is before the oldest event; a new one else. */
  #takeSegment(): Uint8Array {
    const oldestBegin = this.isEmpty ? this.#end : this.#beginOf(this.#firstEventId);
    const isFree = (this.#firstSegment + 1) * SEGMENT_BYTES <= oldestBegin;
    const oldest = isFree ? this.#segments.shift() : undefined;
    if (oldest === undefined) return new Uint8Array(SEGMENT_BYTES);
    this.#firstSegment++;
    return oldest;
  }
}
