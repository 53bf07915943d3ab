/**
 * EventLoopLag: how long the event loop was held, and whether it turns at all.
 *
 * A timer that comes late tells it. Node's own histogram counts its resolution as lag, and forgets what
 * holds the loop when it has just been read.
 */

/** The event loop is taken for stuck when its clock has not ticked for this long. */
const STUCK_MS = 10_000;
const TICK_MS = 10;

export class EventLoopLag {
  #lastTickMs = performance.now();
  #longestMs = 0;
  #ticker: NodeJS.Timeout | undefined;

  start(): void {
    this.#lastTickMs = performance.now();
    this.#ticker = setInterval(() => {
      this.#longestMs = Math.max(this.#longestMs, this.#lateMs);
      this.#lastTickMs = performance.now();
    }, TICK_MS);
  }

  stop(): void {
    clearInterval(this.#ticker);
  }

  get isStuck(): boolean {
    return performance.now() - this.#lastTickMs >= STUCK_MS;
  }

  /** Longest hold since the last call. */
  takeSeconds(): number {
    const longestMs = Math.max(this.#longestMs, this.#lateMs);
    this.#longestMs = 0;
    return longestMs / 1000;
  }

  get #lateMs(): number {
    return Math.max(performance.now() - this.#lastTickMs - TICK_MS, 0);
  }
}
