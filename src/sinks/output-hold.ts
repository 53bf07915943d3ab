/**
 * OutputHold: keeps a rank's output from running ahead of an answer that is on its way to a router.
 *
 * Why      a router buffers the newest 1024 events until it has applied an answer, and never asks again for
 *          what it lost meanwhile.
 * Passes   up to MAX_PASSING_EVENTS events beside each answer: most answers are through before that; some
 *          more while the router, which has it, applies it.
 * Holds    what comes then, in order, until the answers it waits for are through, for at most maxHoldMs;
 *          and no more bytes than the outbox has room for. Nothing is dropped here.
 * Late     an answer that is not through by then holds nothing any more, but what passes beside it still counts: more
 *          than a router keeps is an overrun.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlaneMessage } from '../protocol/envelope.ts';
import type { RouterEventSink } from './sink.ts';

const MAX_PASSING_EVENTS = 256;
/** In all, from the moment an answer is fixed until it is applied: well below what a router buffers. */
const MAX_EVENTS_UNTIL_APPLIED = 768;

export interface OutputHoldOptions {
  /** Bytes held and in the plane's outbox together, at which a hold ends early. */
  readonly maxBytes: number;
  /** 0: output never waits. */
  readonly maxHoldMs?: number;
  /** An answer is about to be fixed: what waits in front of here has to come first. */
  readonly onBegin?: () => void;
  /** Output was let go while an answer was still on its way. */
  readonly onOverrun: () => void;
}

/** The plane behind it. */
export type HeldSink = RouterEventSink & { readonly outboxBytes: number };

/** An answer on its way, or one that is being applied. */
interface Answer {
  readonly fixedAtMs: number;
  /** Events in all, from the first one ever, that had passed then. */
  readonly fixedAtEvents: number;
  /** That may pass before it is through. */
  passingUntil: number;
  /** Nothing waits for it any more. */
  isLate: boolean;
  timer: NodeJS.Timeout | undefined;
  readonly onHeld: () => void;
  readonly onPassed: () => void;
}

const nobody = (): void => undefined;

export class OutputHold implements RouterEventSink {
  readonly #options: OutputHoldOptions;
  readonly #sink: HeldSink;
  readonly #metrics: RelayMetrics;
  readonly #maxHoldMs: number;
  readonly #answers = new Set<Answer>();
  #held: PlaneMessage[] = [];
  #waiting: (() => void)[] = [];
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

  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** Resolves once nothing is held. */
  async idle(): Promise<void> {
    if (!this.isHolding) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  get heldMessages(): number {
    return this.#held.length;
  }

  get maxMessageBytes(): number {
    return this.#sink.maxMessageBytes;
  }

  /**
   * To be called in the moment that fixes an answer's last event id. `onHeld` is called when output begins
   * to wait for it, `onPassed` for each message that leaves beside it. Returns what is to be called when
   * the router has the answer, with the time that it takes to apply it.
   */
  begin(onHeld: () => void = nobody, onPassed: () => void = nobody): (applyMs: number) => void {
    if (this.#maxHoldMs === 0) return nobody;
    this.#options.onBegin?.();
    const answer: Answer = {
      fixedAtMs: performance.now(),
      fixedAtEvents: this.#passedEvents,
      passingUntil: this.#passedEvents + MAX_PASSING_EVENTS,
      isLate: false,
      timer: setTimeout(() => this.#giveUp(answer), this.#maxHoldMs),
      onHeld,
      onPassed,
    };
    this.#answers.add(answer);
    return (applyMs) => {
      if (this.#answers.has(answer)) this.#letApply(answer, applyMs);
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
    this.#forgetAnswers();
    this.#drain();
  }

  /** Gives up what is held, for a publisher whose messages nobody takes any more; how many those are. */
  discard(): number {
    const { heldMessages } = this;
    this.#forgetAnswers();
    this.#held = [];
    this.heldBytes = 0;
    if (heldMessages > 0) this.#endHold();
    return heldMessages;
  }

  #forgetAnswers(): void {
    for (const { timer } of this.#answers) clearTimeout(timer);
    this.#answers.clear();
  }

  #mustHold(nextEvents: number): boolean {
    // Nearly always: an iterator a message would be felt.
    if (this.#answers.size === 0) return false;
    for (const { passingUntil, isLate } of this.#answers) {
      if (!isLate && this.#passedEvents + nextEvents > passingUntil) return true;
    }
    return false;
  }

  #startHold(): void {
    this.#heldSinceMs = performance.now();
    this.#holdTimer = setTimeout(() => this.#overrun(), this.#maxHoldMs);
    for (const { onHeld } of this.#answers) onHeld();
  }

  #letApply(answer: Answer, applyMs: number): void {
    clearTimeout(answer.timer);
    const leftMs = answer.fixedAtMs + this.#maxHoldMs - performance.now();
    answer.passingUntil = answer.fixedAtEvents + MAX_EVENTS_UNTIL_APPLIED;
    const endIn = (ms: number): void => {
      answer.timer = setTimeout(() => this.#end(answer), ms);
    };
    if (applyMs <= 0) this.#end(answer);
    else if (applyMs < leftMs || answer.isLate) endIn(applyMs);
    else {
      answer.timer = setTimeout(() => {
        this.#giveUp(answer);
        if (answer.isLate) endIn(applyMs - leftMs);
      }, leftMs);
    }
    this.#drain();
  }

  #end(answer: Answer): void {
    this.#answers.delete(answer);
    this.#drain();
  }

  #giveUp(answer: Answer): void {
    if (this.#held.length > 0) {
      this.#options.onOverrun();
      this.#end(answer);
      return;
    }
    answer.isLate = true;
    answer.passingUntil = answer.fixedAtEvents + MAX_EVENTS_UNTIL_APPLIED;
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
    if (this.#held.length === 0) this.#endHold();
  }

  #endHold(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
    clearTimeout(this.#holdTimer);
    this.#metrics.outputHoldSeconds.observe((performance.now() - this.#heldSinceMs) / 1000);
  }

  #pass(message: PlaneMessage): void {
    this.#passedEvents += message.eventCount;
    if (this.#answers.size > 0) this.#noteBeside();
    this.#sink.publish(message);
  }

  #noteBeside(): void {
    for (const answer of this.#answers) {
      answer.onPassed();
      if (!answer.isLate || this.#passedEvents <= answer.passingUntil) continue;
      this.#answers.delete(answer);
      this.#options.onOverrun();
    }
  }
}
