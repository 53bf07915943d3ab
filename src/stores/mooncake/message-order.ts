/**
 * MessageOrder: what the numbers of two messages that follow each other say.
 *
 * Orders   by the message number (frame 1), then by event id: the publisher counts both from 1, in each
 *          of its lives anew and without a sign.
 * Gap      each number between two messages is a message that was lost, or one event that the publisher
 *          dropped.
 * Restart  a number or an event id that does not rise. A higher number with a lower event id is one too:
 *          messages of the new life were missed; and so is the next number with an event id that is not the next one, as
 *          dropped events take numbers, and no ids.
 * First    the first message may have any number: what came before it was never to be seen.
 */
export type OrderStep =
  | { readonly kind: 'first' | 'next' | 'restart' }
  | { readonly kind: 'gap'; readonly lostMessages: number };

/** A jump wider than this counts as one: nobody sends so much between two messages. */
const MAX_LOST = 2n ** 32n;

const FIRST: OrderStep = { kind: 'first' };
const NEXT: OrderStep = { kind: 'next' };
const RESTART: OrderStep = { kind: 'restart' };

export class MessageOrder {
  #sequence: bigint | null = null;
  #eventId = -1n;
  /** All events of the last message could be read. */
  #wasWhole = false;

  /** Number of the last message of the present life; null before the first. */
  get lastSequence(): bigint | null {
    return this.#sequence;
  }

  /** Of the last event that could be read, in the present life; null before the first. */
  get lastEventId(): bigint | null {
    return this.#eventId < 0n ? null : this.#eventId;
  }

  /** Null ids: the message holds no event that could be read. `isWhole`: nor one that could not. */
  observe(
    sequence: bigint,
    firstEventId: bigint | null,
    lastEventId: bigint | null,
    isWhole: boolean,
  ): OrderStep {
    const before = this.#sequence;
    const goesBack =
      before !== null &&
      (sequence <= before || (firstEventId !== null && firstEventId <= this.#eventId));
    const isJump =
      before !== null &&
      sequence === before + 1n &&
      this.#wasWhole &&
      isWhole &&
      this.#eventId >= 0n &&
      firstEventId !== null &&
      firstEventId > this.#eventId + 1n;
    this.#sequence = sequence;
    this.#eventId = lastEventId ?? (goesBack ? -1n : this.#eventId);
    this.#wasWhole = isWhole;
    if (before === null) return FIRST;
    if (goesBack || isJump) return RESTART;
    const missing = sequence - before - 1n;
    if (missing === 0n) return NEXT;
    return { kind: 'gap', lostMessages: missing > MAX_LOST ? 1 : Number(missing) };
  }

  /** What comes next is taken as the first message. */
  reset(): void {
    this.#sequence = null;
    this.#eventId = -1n;
  }
}
