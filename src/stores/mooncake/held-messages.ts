/**
 * HeldMessages: messages that wait while the master's answer to a question is on its way.
 *
 * Bounds   bytes, with what a message takes beside its payload: where they are full the hold breaks, which
 *          costs the answer, never a message.
 */
export interface HeldMessage {
  readonly sequence: bigint;
  readonly payload: Uint8Array;
}

/** What the objects around a payload take in memory, or a little more. */
const MESSAGE_BYTES = 256;

export class HeldMessages {
  readonly #maxBytes: number;
  #messages: HeldMessage[] = [];
  #bytes = 0;
  #isHolding = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isHolding(): boolean {
    return this.#isHolding;
  }

  get length(): number {
    return this.#messages.length;
  }

  hold(): void {
    this.#isHolding = true;
  }

  /** False, and the message not kept, where there is no room for it. */
  push(message: HeldMessage): boolean {
    const bytes = message.payload.length + MESSAGE_BYTES;
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    this.#messages.push(message);
    return true;
  }

  /** Ends the hold; what was held, oldest first. */
  release(): readonly HeldMessage[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    this.#isHolding = false;
    return messages;
  }
}
