/**
 * Outbox: messages that wait for their plane, bounded in bytes.
 *
 * Full     the oldest whole messages go, since a router heals a hole at the front with one query.
 * Owns     nothing but the list; the plane counts what was given up.
 */
import type { PlaneMessage } from '../protocol/envelope.ts';

/** What has to be kept of a message; its events' lists do not outlive their batch. */
export type OutboxMessage = Pick<PlaneMessage, 'sequence' | 'envelope'>;

export class Outbox {
  readonly #maxBytes: number;
  #messages: OutboxMessage[] = [];
  #first = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get length(): number {
    return this.#messages.length - this.#first;
  }

  /** Adds a message; returns how many older ones, or the message itself, had to go for it. */
  push({ sequence, envelope }: OutboxMessage): number {
    let dropped = 0;
    while (this.length > 0 && this.#bytes + envelope.length > this.#maxBytes) {
      this.shift();
      dropped++;
    }
    if (envelope.length > this.#maxBytes) return dropped + 1;
    this.#messages.push({ sequence, envelope });
    this.#bytes += envelope.length;
    return dropped;
  }

  /** Takes the oldest message. */
  shift(): OutboxMessage | undefined {
    const message = this.#messages[this.#first];
    if (message === undefined) return undefined;
    this.#bytes -= message.envelope.length;
    this.#first++;
    // Half of a long list is moved at most once for each message in it.
    if (this.#first >= 1024 && this.#first * 2 >= this.#messages.length) {
      this.#messages = this.#messages.slice(this.#first);
      this.#first = 0;
    }
    return message;
  }
}
