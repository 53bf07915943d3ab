/**
 * TurnQueue: work that comes in portions, in turns of the event loop that others have their share of.
 *
 * Turn     runs portions, oldest first, until TURN_MS are over: it lasts that and one portion, however many ranks ask.
 */
const TURN_MS = 4;

export interface TurnQueueOptions {
  /** Calls back at the end of this turn. */
  readonly defer: (callback: () => void) => void;
  /** Monotonic. */
  readonly nowMs: () => number;
}

export class TurnQueue {
  readonly #options: TurnQueueOptions;
  #portions: (() => void)[] = [];
  #isDeferred = false;

  constructor(options: TurnQueueOptions) {
    this.#options = options;
  }

  /** Runs behind what was added before: a portion that adds another lets the others go first. */
  add(portion: () => void): void {
    this.#portions.push(portion);
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    this.#options.defer(() => this.#run());
  }

  #run(): void {
    const endMs = this.#options.nowMs() + TURN_MS;
    let done = 0;
    for (; done < this.#portions.length; done++) {
      if (done > 0 && this.#options.nowMs() >= endMs) break;
      this.#portions[done]?.();
    }
    this.#portions = this.#portions.slice(done);
    this.#isDeferred = this.#portions.length > 0;
    if (this.#isDeferred) this.#options.defer(() => this.#run());
  }
}
