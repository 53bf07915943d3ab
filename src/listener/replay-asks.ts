/**
 * ReplayAsks: the one replay request under way, and when the next one may follow.
 *
 * Attempts  asks in a row that brought nothing, at most MAX_ATTEMPTS; then a cool-down without any.
 * Asks      in a row for one standstill, at most MAX_ASKS, however much each of them brings.
 * Spacing   an engine publishes nothing while it answers, so asks are SPACING_MS apart.
 * Patience  for the first batch three times that for the next; FIRST_PATIENCE_MS for the first of all.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';

const MAX_ATTEMPTS = 3;
const MAX_ASKS = 64;
const SPACING_MS = 100;
const FIRST_PATIENCE_MS = 10_000;
/** An answer begins when the engine's publisher gets round to it, and then runs without a pause. */
const FIRST_BATCH_FACTOR = 3;

export interface AskOptions {
  /** Longest pause within an answer. */
  readonly idleMs: number;
  readonly cooldownMs: number;
}

export interface Ask {
  readonly id: number;
  readonly start: bigint;
  /** Where the stream stood: what was to be emitted next, and what had not been seen. */
  readonly next: bigint;
  readonly unseen: bigint;
  readonly lostBatches: number;
  /** First number of the answer that is not below `start`. */
  first: bigint | null;
  lastMessageMs: number;
}

export class ReplayAsks {
  readonly #options: AskOptions;
  readonly #metrics: RelayMetrics;
  current: Ask | null = null;
  #lateId = 0;
  #nextId = 1;
  #attempts = 0;
  #inARow = 0;
  #hasEnded = false;
  /** No ask before. */
  notBeforeMs: number = Number.NEGATIVE_INFINITY;
  /** No ask before, and nothing waits for one. */
  coolUntilMs: number = Number.NEGATIVE_INFINITY;

  constructor(options: AskOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
  }

  /** The ask `id`, while it is under way; a later answer is counted, once. */
  wanted(id: number): Ask | null {
    if (this.current?.id === id) return this.current;
    if (id !== this.#lateId) this.#metrics.engineReplays.late++;
    this.#lateId = id;
    return null;
  }

  /** Ends the ask under way without its end, counts that, and returns it. */
  drop(): Ask | null {
    const ask = this.current;
    this.current = null;
    if (ask !== null) this.#metrics.engineReplays[ask.first === null ? 'timeout' : 'partial']++;
    return ask;
  }

  begin(
    start: bigint,
    { next, unseen }: Pick<Ask, 'next' | 'unseen'>,
    lostBatches: number,
    nowMs: number,
  ): Ask {
    const id = this.#nextId++;
    this.current = { id, start, next, unseen, lostBatches, first: null, lastMessageMs: nowMs };
    this.#inARow++;
    return this.current;
  }

  /** When the ask under way has lasted too long without a message. */
  get deadlineMs(): number {
    if (this.current === null) return Number.POSITIVE_INFINITY;
    const { idleMs } = this.#options;
    const { first, lastMessageMs } = this.current;
    if (first !== null) return lastMessageMs + idleMs;
    return lastMessageMs + (this.#hasEnded ? FIRST_BATCH_FACTOR * idleMs : FIRST_PATIENCE_MS);
  }

  end(nowMs: number): void {
    this.current = null;
    this.#attempts = 0;
    this.#hasEnded = true;
    this.notBeforeMs = nowMs + SPACING_MS;
  }

  /** After an ask without its end; true where no further one makes sense for now. */
  fail(hasProgress: boolean, nowMs: number): boolean {
    this.current = null;
    this.#hasEnded = true;
    this.notBeforeMs = nowMs + SPACING_MS;
    this.#attempts = hasProgress ? 0 : this.#attempts + 1;
    if (this.#attempts < MAX_ATTEMPTS && !this.isExhausted) return false;
    this.coolUntilMs = nowMs + this.#options.cooldownMs;
    return true;
  }

  get isExhausted(): boolean {
    return this.#inARow >= MAX_ASKS;
  }

  /** The stream flows again: what follows is counted anew. */
  succeed(): void {
    this.#attempts = 0;
    this.#inARow = 0;
  }

  /** Another link or another life: nothing that was found out about asking holds any more. */
  reset(): void {
    this.current = null;
    this.succeed();
    this.notBeforeMs = Number.NEGATIVE_INFINITY;
    this.coolUntilMs = Number.NEGATIVE_INFINITY;
  }
}
