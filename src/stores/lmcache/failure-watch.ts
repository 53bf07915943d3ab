/**
 * FailureWatch: whether reads of L1 fail that a lookup had promised. In a healthy store that stays near zero:
 * each one is an eviction or a race between the lookup and the read.
 *
 * Alarms  from `ALARM_KEYS` failed keys within `WINDOW_S` of event time, until the window is below that again.
 */
import type { BusEvent } from '../../engines/lmcache/contracts.ts';
import { RecentSums } from './recent-sums.ts';

const PART_S = 10;
const PARTS = 30;
export const WINDOW_S: number = PART_S * PARTS;
export const ALARM_KEYS = 10;

export class FailureWatch {
  readonly #failed = new RecentSums(PART_S, PARTS);

  /** Failed keys in the window that ends at the last event. */
  get recentKeys(): number {
    return this.#failed.sum();
  }

  get isAlarming(): boolean {
    return this.recentKeys >= ALARM_KEYS;
  }

  push(event: BusEvent): void {
    const keys = event.name === 'L1_READ_FAILED' ? (event.metadata.keys?.length ?? 0) : 0;
    this.#failed.add(event.timestamp, keys);
  }

  /** The clock was set back. */
  rewind(now: number): void {
    this.#failed.rewind(now);
  }

  /** Time goes on without events too. */
  advance(now: number): void {
    this.#failed.advance(now);
  }
}
