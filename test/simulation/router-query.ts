/**
 * RouterQuery: one query of a router, attempt after attempt, as a stock one makes them.
 *
 * Attempt   a request, its acknowledgement within 5 s, and a stream with the answer within 30 s of it.
 * Again     after pauses that double, up to eight times; what is no failure of the way is final.
 */
import type { QueryAnswer } from './router-answer.ts';
import type { RunningQuery } from './router-rank.ts';
import type { VirtualClock } from './virtual-clock.ts';

const MAX_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 200;
const ACKNOWLEDGEMENT_MS = 5000;
const ATTEMPT_MS = 30_000;

export interface Attempt {
  /** Sends the request, under the subject of which the answer speaks. */
  readonly request: (subject: string, onAcknowledged: (text: string | null) => void) => void;
  /** Null: eight attempts have failed. */
  readonly onAnswer: (answer: QueryAnswer | null) => void;
  /** Nothing more is wanted of it. */
  readonly forget: (subject: string) => void;
}

export class RouterQuery implements RunningQuery {
  readonly #name: string;
  readonly #clock: VirtualClock;
  readonly #attempt: Attempt;
  /** An attempt is under way. */
  #isAsking = false;
  #dumpFailed = false;
  #cancelTimer: () => void = () => undefined;
  attempts = 0;

  /** Begins after up to 3 ms. */
  constructor(name: string, clock: VirtualClock, waitMs: number, attempt: Attempt) {
    this.#name = name;
    this.#clock = clock;
    this.#attempt = attempt;
    this.#after(waitMs, () => this.#begin());
  }

  /** Of the attempt that runs. */
  get subject(): string {
    return `${this.#name}-${this.attempts}`;
  }

  cancel(): void {
    this.#isAsking = false;
    this.#cancelTimer();
    this.#attempt.forget(this.subject);
  }

  /** Null: the stream ended without one. */
  takeStream(answer: QueryAnswer | null): void {
    if (!this.#isAsking) return;
    this.#dumpFailed = answer?.kind === 'tree_dump_failed';
    if (answer === null || this.#dumpFailed || answer.kind === 'error') this.#fail();
    else this.#end(answer);
  }

  #begin(): void {
    this.attempts++;
    this.#isAsking = true;
    this.#dumpFailed = false;
    const { subject } = this;
    this.#after(ACKNOWLEDGEMENT_MS, () => this.#fail());
    this.#attempt.request(subject, (text) => {
      if (!this.#isAsking || subject !== this.subject) return;
      if (text === null || /^Server (overloaded|unavailable):/.test(text)) this.#fail();
      else this.#after(ATTEMPT_MS, () => this.#fail());
    });
  }

  #fail(): void {
    this.#isAsking = false;
    this.#attempt.forget(this.subject);
    if (this.attempts === MAX_ATTEMPTS) {
      this.#end(this.#dumpFailed ? { kind: 'tree_dump_failed' } : null);
      return;
    }
    this.#after(FIRST_PAUSE_MS * 2 ** (this.attempts - 1), () => this.#begin());
  }

  #end(answer: QueryAnswer | null): void {
    this.cancel();
    this.#attempt.onAnswer(answer);
  }

  /** In place of whatever else was to come. */
  #after(ms: number, act: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(act, ms);
  }
}
