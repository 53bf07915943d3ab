/**
 * OutputHold: keeps a rank's output from running ahead of an answer that is on its way to a router.
 *
 * Why      a router buffers the newest 1024 events while a query of its runs, and never asks again for what
 *          it lost meanwhile.
 * Passes   up to MAX_PASSING_EVENTS events beside each answer: most answers are through before that.
 * Holds    what comes then, in order, until the answers it waits for are through, for at most maxHoldMs;
 *          and no more bytes than the outbox has room for. Nothing is dropped here.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlaneMessage } from '../protocol/envelope.ts';
import type { RouterEventSink } from './sink.ts';

const MAX_PASSING_EVENTS = 256;

export interface OutputHoldOptions {
  /** Bytes held and in the plane's outbox together, at which a hold ends early. */
  readonly maxBytes: number;
  readonly maxHoldMs?: number;
  /** Output was let go while an answer was still on its way. */
  readonly onOverrun: () => void;
}

/** The plane behind it. */
export type HeldSink = RouterEventSink & { readonly outboxBytes: number };

/** An answer on its way. */
interface Answer {
  /** Events that had passed in all when it was fixed. */
  readonly passedBefore: number;
  readonly timer: NodeJS.Timeout;
  readonly onHeld: () => void;
}

export class OutputHold implements RouterEventSink {
  readonly #options: OutputHoldOptions;
  readonly #sink: HeldSink;
  readonly #metrics: RelayMetrics;
  readonly #maxHoldMs: number;
  /** In the order they were fixed, so the first has let most events pass. */
  readonly #answers = new Set<Answer>();
  #held: PlaneMessage[] = [];
  #heldSinceMs = 0;
  #holdTimer: NodeJS.Timeout | undefined;
  #passedEvents = 0;
  heldBytes = 0;

  constructor(options: OutputHoldOptions, sink: HeldSink, metrics: RelayMetrics) {
    this.#options = options;
    this.#maxHoldMs = options.maxHoldMs ?? 2000;
    this.#sink = sink;
    this.#metrics = metrics;
  }

  get heldMessages(): number {
    return this.#held.length;
  }

  get maxMessageBytes(): number {
    return this.#sink.maxMessageBytes;
  }

  /**
   * To be called in the moment that fixes an answer's last event id. `onHeld` is called at most once,
   * when output begins to wait for it. Returns what is to be called when the answer is through.
   */
  begin(onHeld: () => void = () => undefined): () => void {
    const timer = setTimeout(() => this.#giveUp(answer), this.#maxHoldMs);
    const answer: Answer = { passedBefore: this.#passedEvents, timer, onHeld };
    this.#answers.add(answer);
    return () => {
      clearTimeout(timer);
      if (this.#answers.delete(answer)) this.#drain();
    };
  }

  publish(message: PlaneMessage): void {
    if (this.#held.length === 0 && !this.#mustHold(message.eventCount)) {
      this.#pass(message);
      return;
    }
    if (this.#held.length === 0) this.#startHold();
    this.#held.push(message);
    this.heldBytes += message.envelope.length;
    if (this.heldBytes + this.#sink.outboxBytes >= this.#options.maxBytes) this.#overrun();
  }

  /** Nothing is held any more, whatever is still on its way. */
  release(): void {
    for (const { timer } of this.#answers) clearTimeout(timer);
    this.#answers.clear();
    this.#drain();
  }

  #mustHold(nextEvents: number): boolean {
    for (const { passedBefore } of this.#answers) {
      return this.#passedEvents + nextEvents - passedBefore > MAX_PASSING_EVENTS;
    }
    return false;
  }

  #startHold(): void {
    this.#heldSinceMs = performance.now();
    this.#holdTimer = setTimeout(() => this.#overrun(), this.#maxHoldMs);
    for (const { onHeld } of this.#answers) onHeld();
  }

  #giveUp(answer: Answer): void {
    this.#answers.delete(answer);
    if (this.#held.length > 0) this.#options.onOverrun();
    this.#drain();
  }

  #overrun(): void {
    this.#options.onOverrun();
    this.release();
  }

  #drain(): void {
    let passed = 0;
    for (const message of this.#held) {
      if (this.#mustHold(message.eventCount)) break;
      this.heldBytes -= message.envelope.length;
      this.#pass(message);
      passed++;
    }
    if (passed === 0) return;
    this.#held = this.#held.slice(passed);
    if (this.#held.length > 0) return;
    clearTimeout(this.#holdTimer);
    this.#metrics.outputHoldSeconds.observe((performance.now() - this.#heldSinceMs) / 1000);
  }

  #pass(message: PlaneMessage): void {
    this.#passedEvents += message.eventCount;
    this.#sink.publish(message);
  }
}
