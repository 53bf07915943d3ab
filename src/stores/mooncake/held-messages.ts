/**
 * HeldMessages: messages that wait while the master's answer to a question is on its way.
 *
 * Bounds   bytes: where they are full the hold breaks, which costs the answer, never a message.
 */
export interface HeldMessage {
  readonly sequence: bigint;
  readonly payload: Uint8Array;
}

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
    if (this.#bytes + message.payload.length > this.#maxBytes) return false;
    this.#bytes += message.payload.length;
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
