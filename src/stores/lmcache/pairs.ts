/**
 * Pairs: starts that wait for their end.
 *
 * Key     what ties the two together; a second start under a key replaces the first.
 * Bounds  `maxPending` starts, the oldest goes; one that has waited `timeoutS` seconds of event time goes too.
 * Counts  both, and the ends that found no start.
 */
import { LinkedMap } from './linked-map.ts';
import { shortKey } from './short-key.ts';

export interface PairBounds {
  readonly maxPending: number;
  readonly timeoutS: number;
}

export class Pairs<Value> {
  evicted = 0;
  timedOut = 0;
  endsAlone = 0;
  readonly #bounds: PairBounds;
  /** In the order in which they began, as far as their publishers' clocks agree. */
  readonly #pending = new LinkedMap<{ readonly startedAt: number; readonly value: Value }>();

  constructor(bounds: PairBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#pending.size;
  }

  start(key: string, startedAt: number, value: Value): void {
    const short = shortKey(key);
    this.#pending.take(short);
    this.#pending.set(short, { startedAt, value });
    this.sweep(startedAt);
  }

  /** Seconds since the start, which may be below 0 between two clocks, and what it brought; null without one. */
  end(key: string, endedAt: number): { readonly seconds: number; readonly value: Value } | null {
    const start = this.#pending.take(shortKey(key));
    if (start === undefined) {
      this.endsAlone++;
      return null;
    }
    return { seconds: endedAt - start.startedAt, value: start.value };
  }

  /** Gives up what is too old or too much. */
  sweep(now: number): void {
    for (let { oldest } = this.#pending; oldest !== undefined; { oldest } = this.#pending) {
      const isOld = now - oldest.value.startedAt > this.#bounds.timeoutS;
      if (!isOld && this.#pending.size <= this.#bounds.maxPending) return;
      this.#pending.take(oldest.key);
      if (isOld) this.timedOut++;
      else this.evicted++;
    }
  }
}
