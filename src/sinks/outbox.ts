/**
 * Outbox: messages that are kept until the plane has confirmed them, bounded in bytes.
 *
 *     confirmed (gone) │ handed over, not confirmed │ waiting
 *                      ▲ oldest                     ▲ next()
 *
 * Full     the oldest whole messages go, since a router heals a hole at the front with one query. Whether one that was handed
 *          over is lost with it shows only later: it is an orphan until it is confirmed, or its link has ended.
 * Owns     nothing but the list; the plane counts what was given up.
 */
import type { PlaneMessage } from '../protocol/envelope.ts';

/** What is used of a message here. */
export type OutboxMessage = Omit<PlaneMessage, 'eventCount'>;

/** Gone messages in front of the list, before it is copied without them. */
const COMPACT_AT = 1024;

export class Outbox {
  readonly #maxBytes: number;
  #messages: OutboxMessage[] = [];
  #oldest = 0;
  #next = 0;
  #bytes = 0;
  /** Their numbers, rising. */
  #orphans: number[] = [];

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes kept, handed over or not. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Messages kept, handed over or not. */
  get length(): number {
    return this.#messages.length - this.#oldest;
  }

  get waiting(): number {
    return this.#messages.length - this.#next;
  }

  /** Adds a message; returns how many older ones that still waited, or the message itself, had to go for it. */
  push(message: OutboxMessage): number {
    const { envelope } = message;
    let dropped = 0;
    while (this.length > 0 && this.#bytes + envelope.length > this.#maxBytes) {
      const isHandedOver = this.#next > this.#oldest;
      const { sequence } = this.#dropOldest();
      if (isHandedOver) this.#orphans.push(sequence);
      else dropped++;
    }
    if (envelope.length > this.#maxBytes) return dropped + 1;
    this.#messages.push(message);
    this.#bytes += envelope.length;
    return dropped;
  }

  /** The oldest waiting message, which counts as handed over from here on. */
  next(): OutboxMessage | undefined {
    const message = this.#messages[this.#next];
    if (message === undefined) return undefined;
    this.#next++;
    return message;
  }

  /** The oldest waiting message, which is the caller's from here on: none may be handed over and unconfirmed. */
  take(): OutboxMessage | undefined {
    const message = this.next();
    if (message !== undefined) this.#dropOldest();
    return message;
  }

  /** Takes the message that `next` gave last out of the list: the plane will not have it. */
  discard(): void {
    const message = this.#messages[--this.#next] as OutboxMessage;
    this.#messages.splice(this.#next, 1);
    this.#bytes -= message.envelope.length;
  }

  /** Gives up handed-over messages with numbers up to `sequence`: they have arrived. */
  confirm(sequence: number): void {
    if (this.#orphans.length > 0) {
      this.#orphans = this.#orphans.filter((orphan) => orphan > sequence);
    }
    while (this.#oldest < this.#next) {
      const message = this.#messages[this.#oldest];
      if (message === undefined || message.sequence > sequence) return;
      this.#dropOldest();
      // Only here: whoever was handed a message that is dropped may not have sent it yet.
      message.slab?.giveBack();
    }
  }

  /** How many orphans there are, which are none from here on: their link has ended. */
  loseOrphans(): number {
    const count = this.#orphans.length;
    this.#orphans = [];
    return count;
  }

  /** Makes everything that is not confirmed wait again; returns how many messages that is. */
  rewind(): number {
    const count = this.#next - this.#oldest;
    this.#next = this.#oldest;
    return count;
  }

  #dropOldest(): OutboxMessage {
    const message = this.#messages[this.#oldest] as OutboxMessage;
    this.#bytes -= message.envelope.length;
    if (this.#next === this.#oldest) this.#next++;
    this.#oldest++;
    if (this.#oldest >= COMPACT_AT && this.#oldest * 2 >= this.#messages.length) {
      this.#messages = this.#messages.slice(this.#oldest);
      this.#next -= this.#oldest;
      this.#oldest = 0;
    }
    return message;
  }
}
