/** Time of a store's simulation: it passes from one thing that is due to the next. */
import type { StoreClock } from '../../src/stores/store-clock.ts';

interface Due {
  readonly atMs: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** What a promise that was settled sets going is followed up to here before the next thing. */
const MICROTASKS = 24;

export class SimulatedStoreClock implements StoreClock {
  #nowMs = 0;
  #due: Due[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    const due: Due = { atMs: this.#nowMs + delayMs, callback, isCancelled: false };
    const at = this.#due.findIndex((one) => one.atMs > due.atMs);
    if (at < 0) this.#due.push(due);
    else this.#due.splice(at, 0, due);
    return () => {
      due.isCancelled = true;
    };
  }

  async run(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const first = this.#due[0];
      if (first === undefined || first.atMs > endMs) break;
      this.#due.shift();
      if (first.isCancelled) continue;
      this.#nowMs = first.atMs;
      first.callback();
      for (let count = 0; count < MICROTASKS; count++) await Promise.resolve();
    }
    this.#nowMs = endMs;
  }
}
