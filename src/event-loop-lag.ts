/** EventLoopLag: how long the event loop was held, and whether it turns at all. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

/** The event loop is taken for stuck when its clock has not ticked for this long. */
const STUCK_MS = 10_000;
const TICK_MS = 1000;

export class EventLoopLag {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: 10 });
  #lastTickMs = performance.now();
  #ticker: NodeJS.Timeout | undefined;

  start(): void {
    this.#delay.enable();
    this.#ticker = setInterval(() => {
      this.#lastTickMs = performance.now();
    }, TICK_MS);
  }

  stop(): void {
    clearInterval(this.#ticker);
    this.#delay.disable();
  }

  get isStuck(): boolean {
    return performance.now() - this.#lastTickMs >= STUCK_MS;
  }

  /** Longest hold since the last call. */
  takeSeconds(): number {
    const lagNs = this.#delay.max;
    this.#delay.reset();
    return lagNs / 1e9;
  }
}
