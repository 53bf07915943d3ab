/** HitRate: tokens that lookups asked for and found, over the last minutes. */
import type { BusEvent } from '../../engines/lmcache/contracts.ts';
import { amount } from './deriver.ts';
import { RecentSums } from './recent-sums.ts';

const PART_S = 10;
const HOUR_PARTS = 360;
const MINUTE_PARTS = 6;

export class HitRate {
  readonly #requested = new RecentSums(PART_S, HOUR_PARTS);
  readonly #hit = new RecentSums(PART_S, HOUR_PARTS);

  push(event: BusEvent): void {
    if (event.name !== 'MP_LOOKUP_PREFETCH_END') return;
    const { requested_tokens, hit_tokens } = event.metadata;
    this.#requested.add(event.timestamp, amount(requested_tokens));
    this.#hit.add(event.timestamp, amount(hit_tokens));
  }

  /** The clock was set back. */
  rewind(now: number): void {
    this.#requested.rewind(now);
    this.#hit.rewind(now);
  }

  advance(now: number): void {
    this.#requested.advance(now);
    this.#hit.advance(now);
  }

  /** 0 to 1, over so many minutes up to 60; null where nothing was asked for. */
  over(minutes: number, skippedMinutes: number = 0): number | null {
    const parts = [minutes * MINUTE_PARTS, skippedMinutes * MINUTE_PARTS] as const;
    const requested = this.#requested.sum(...parts);
    return requested > 0 ? this.#hit.sum(...parts) / requested : null;
  }

  /** Of each of the last 60 minutes, oldest first. */
  byMinute(): (number | null)[] {
    return Array.from({ length: 60 }, (_, minute) => this.over(1, 59 - minute));
  }
}
