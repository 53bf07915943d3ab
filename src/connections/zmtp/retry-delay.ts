/**
 * RetryDelay: how long a link that was lost is left before it is made again: 100 ms, twice as long each time, to 5 s.
 *
 * Jitter   up to a quarter more, so that relays do not come back to an engine or a broker all at once.
 */
const FIRST_MS = 100;
const MAX_MS = 5000;
const JITTER = 0.25;

export class RetryDelay {
  #nextMs = FIRST_MS;

  /** Of the next attempt, and never less than `leastMs`. */
  take(leastMs = 0): number {
    const delayMs = Math.max(leastMs, this.#nextMs) * (1 + JITTER * Math.random());
    this.#nextMs = Math.min(MAX_MS, 2 * this.#nextMs);
    return delayMs;
  }

  /** A link stands. */
  reset(): void {
    this.#nextMs = FIRST_MS;
  }
}
