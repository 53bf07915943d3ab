/**
 * MessageSlab: memory that many messages are cut from, and that is used again once all of them are through.
 *
 * Why      messages wait for the server's confirmation for longer than the collector's young generation lasts:
 *          fresh memory for each would be given back by full collections alone.
 * Given    back by whoever had a message last. One that is never given back costs its slab a second use,
 *          and nothing else: the collector takes it.
 */

/** One allocation for many messages. */
const SLAB_BYTES = 1 << 17;

/** A larger message has memory of its own, so that a slab is never held by a few bytes for long; 128 stores of a block take less. */
export const MAX_SHARED_BYTES: number = SLAB_BYTES >>> 2;

/** Slabs that wait for their next use, over all publishers. */
const MAX_FREE_SLABS = 64;

const free: MessageSlab[] = [];

/** Bytes that a plane wants free around each envelope, for what it sends before and behind it. */
export interface MessageRoom {
  readonly before: number;
  readonly behind: number;
}

export const NO_ROOM: MessageRoom = { before: 0, behind: 0 };

export class MessageSlab {
  readonly buffer: Buffer;
  /** Cut from it and not given back. */
  messages = 0;
  /** Full: nothing more is cut from it. */
  #isRetired = false;

  private constructor(bytes: number) {
    this.buffer = Buffer.allocUnsafeSlow(bytes);
  }

  /** One for many messages, the first of them of `bytes`. */
  static take(bytes: number): MessageSlab {
    if (bytes > SLAB_BYTES) return MessageSlab.ofOne(bytes);
    const slab = free.pop() ?? new MessageSlab(SLAB_BYTES);
    slab.#isRetired = false;
    return slab;
  }

  /** One for a single message. */
  static ofOne(bytes: number): MessageSlab {
    return new MessageSlab(bytes);
  }

  retire(): void {
    this.#isRetired = true;
    this.#reuse();
  }

  /** One of its messages is needed no more. */
  giveBack(): void {
    this.messages--;
    this.#reuse();
  }

  #reuse(): void {
    if (!this.#isRetired || this.messages > 0) return;
    if (this.buffer.length === SLAB_BYTES && free.length < MAX_FREE_SLABS) free.push(this);
  }
}
