/**
 * EventRing: the newest router events with their bytes, ids without a hole.
 *
 * Bounds   `maxEvents` and `maxBytes`, whichever is reached first; the oldest go. One event over `maxBytes`
 *          leaves the ring empty.
 * Owns     a ring of bytes and one of their places, which grow until they reach the bounds: no object an
 *          event.
 */
import type { RouterBatch } from '../protocol/router-event.ts';

export interface EventRingOptions {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

const FIRST_EVENTS = 256;
const FIRST_BYTES = 1 << 16;
/** In few steps: doubling copies as much again as there will be, and has the collector run each time. */
const GROWTH = 8;

export class EventRing {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #bytes: Uint8Array;
  /** Where an event begins, counted in bytes since the first; slot: its id modulo the length. */
  #begins: Float64Array;
  #end = 0;
  #firstEventId = 1;
  #nextEventId = 1;

  constructor({ maxEvents, maxBytes }: EventRingOptions) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
    this.#bytes = new Uint8Array(Math.min(FIRST_BYTES, maxBytes));
    this.#begins = new Float64Array(Math.min(FIRST_EVENTS, maxEvents));
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
    if (this.byteCount + length > this.#bytes.length) this.#growBytes(this.byteCount + length);
    const at = this.#end % this.#bytes.length;
    const room = this.#bytes.length - at;
    if (length <= room) {
      this.#bytes.set(bytes, at);
    } else {
      this.#bytes.set(bytes.subarray(0, room), at);
      this.#bytes.set(bytes.subarray(room), 0);
    }
    this.#makeRoomForEvents(ends.length);
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

  #makeRoomForEvents(count: number): void {
    while (this.eventCount + count > this.#begins.length && this.#begins.length < this.#maxEvents) {
      this.#growBegins();
    }
  }

  #beginOf(eventId: number): number {
    return this.#begins[eventId % this.#begins.length] as number;
  }

  #copy(begin: number, end: number): Uint8Array {
    const copy = new Uint8Array(end - begin);
    const at = begin % this.#bytes.length;
    const room = Math.min(copy.length, this.#bytes.length - at);
    copy.set(this.#bytes.subarray(at, at + room));
    copy.set(this.#bytes.subarray(0, copy.length - room), room);
    return copy;
  }

  #growBytes(needed: number): void {
    const kept = this.isEmpty ? new Uint8Array(0) : this.copyFrom(this.#firstEventId);
    const base = this.#end - kept.length;
    let size = this.#bytes.length;
    while (size < needed) size *= GROWTH;
    this.#bytes = new Uint8Array(Math.min(size, this.#maxBytes));
    // Places count on from the new ring's begin.
    for (let id = this.#firstEventId; id < this.#nextEventId; id++) {
      this.#begins[id % this.#begins.length] = this.#beginOf(id) - base;
    }
    this.#bytes.set(kept);
    this.#end = kept.length;
  }

  #growBegins(): void {
    const begins = new Float64Array(Math.min(this.#begins.length * 2, this.#maxEvents));
    for (let id = this.#firstEventId; id < this.#nextEventId; id++) {
      begins[id % begins.length] = this.#beginOf(id);
    }
    this.#begins = begins;
  }
}
