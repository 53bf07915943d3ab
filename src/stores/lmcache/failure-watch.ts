/**
 * FailureWatch: whether reads of L1 fail that a lookup had promised. In a healthy store that stays near zero:
 * each one is an eviction or a race between the lookup and the read.
 *
 * Alarms  from `ALARM_KEYS` failed keys within `WINDOW_S` of event time, until the window is below that again.
 * Bounds  one count for each part of the window.
 */
import type { BusEvent } from '../../engines/lmcache/contracts.ts';

const PART_S = 10;
const PARTS = 30;
export const WINDOW_S: number = PART_S * PARTS;
export const ALARM_KEYS = 10;

export class FailureWatch {
  readonly #failed = new Array<number>(PARTS).fill(0);
  #newestPart = 0;

  /** Failed keys in the window that ends at the last event. */
  get recentKeys(): number {
    return this.#failed.reduce((sum, count) => sum + count, 0);
  }

  get isAlarming(): boolean {
    return this.recentKeys >= ALARM_KEYS;
  }

  push(event: BusEvent): void {
    const keys = event.name === 'L1_READ_FAILED' ? (event.metadata.keys?.length ?? 0) : 0;
    this.advance(event.timestamp);
    if (keys > 0) this.#failed[this.#newestPart % PARTS] = this.#count() + keys;
  }

  /** Time goes on without events too. */
  advance(now: number): void {
    const part = Math.floor(now / PART_S);
    if (part <= this.#newestPart) return;
    const passed = Math.min(PARTS, part - this.#newestPart);
    for (let back = 0; back < passed; back++) this.#failed[(part - back) % PARTS] = 0;
    this.#newestPart = part;
  }

  #count(): number {
    return this.#failed[this.#newestPart % PARTS] as number;
  }
}
