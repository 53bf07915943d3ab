/**
 * SendQueue: what one subscriber has not been sent yet, bounded in messages and bytes.
 *
 * Full     what comes next is refused until half has been sent: one hole then, and no hole after each message.
 * Sent     parcels that a socket was given stay until it says that they are through; rewind() makes them wait again.
 */
import type { Parcel } from './parcel.ts';

export interface QueueBounds {
  readonly messages: number;
  readonly bytes: number;
}

/** Gone parcels in front of the list, before it is copied without them. */
const COMPACT_AT = 1024;

export class SendQueue {
  readonly #bounds: QueueBounds;
  #parcels: Parcel[] = [];
  /** Those before the first are through, those before the second are with a socket. */
  #oldest = 0;
  #next = 0;
  #messages = 0;
  #bytes = 0;
  #isFull = false;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  /** Nothing waits, and no socket has anything. */
  get isEmpty(): boolean {
    return this.#oldest === this.#parcels.length;
  }

  /** False where it is refused. One that is larger than the bounds has its turn when nothing else waits. */
  offer(parcel: Parcel): boolean {
    if (this.#isFull && this.#isOver(0.5, 0, 0)) return false;
    this.#isFull = !this.isEmpty && this.#isOver(1, parcel.messages, parcel.bytes);
    if (this.#isFull) return false;
    parcel.hold();
    this.#parcels.push(parcel);
    this.#messages += parcel.messages;
    this.#bytes += parcel.bytes;
    return true;
  }

  /** For a socket: those that wait, to `maxBytes` and at least one. */
  take(maxBytes: number): Parcel[] {
    const first = this.#next;
    let bytes = 0;
    while (this.#next < this.#parcels.length && bytes < maxBytes) {
      bytes += (this.#parcels[this.#next++] as Parcel).bytes;
    }
    return this.#parcels.slice(first, this.#next);
  }

  /** Those that were taken are through. */
  confirm(): void {
    while (this.#oldest < this.#next) this.#letGo(this.#parcels[this.#oldest++] as Parcel);
    if (this.isEmpty) {
      this.#parcels = [];
      this.#oldest = 0;
      this.#next = 0;
    } else if (this.#oldest >= COMPACT_AT && this.#oldest * 2 >= this.#parcels.length) {
      this.#parcels = this.#parcels.slice(this.#oldest);
      this.#next -= this.#oldest;
      this.#oldest = 0;
    }
  }

  rewind(): void {
    this.#next = this.#oldest;
  }

  /** What waits goes, what a socket has stays; how many messages went. */
  clear(): number {
    const before = this.#messages;
    for (const parcel of this.#parcels.splice(this.#next)) this.#letGo(parcel);
    return before - this.#messages;
  }

  #isOver(part: number, messages: number, bytes: number): boolean {
    const { messages: maxMessages, bytes: maxBytes } = this.#bounds;
    return this.#messages + messages > maxMessages * part || this.#bytes + bytes > maxBytes * part;
  }

  #letGo(parcel: Parcel): void {
    this.#messages -= parcel.messages;
    this.#bytes -= parcel.bytes;
    parcel.letGo();
  }
}
