/**
 * StreamSubscription: one model's subscription over one link: asks, acknowledges, asks again.
 *
 * Credit   one batch at a time: the next is asked for when the last has been applied.
 * Resumes  behind a new link, an end, a silence or an answer that cannot be read, from the last number had. After a
 *          failure it waits, 0.5 s first and twice as long each time up to 60 s.
 * Page     half as large after an answer that was too much to read, or a link that ended instead of one.
 * Answer   a server says nothing at all to a request that it does not know: after ANSWER_MS that has failed.
 * Pings    every PING_MS, or a server ends the subscription after 120 s.
 * Gives up what is held once there has been no subscription for GIVE_UP_MS.
 */
import type { SourceMetrics } from '../../metrics/source-metrics.ts';
import type { StoreClock } from '../store-clock.ts';
import {
  ackFrames,
  cancelFrames,
  pingFrames,
  readStreamFrames,
  subscribeFrames,
} from './stream-frames.ts';
import type { StreamView } from './stream-view.ts';

const ANSWER_MS = 10_000;
const PING_MS = 20_000;
const GIVE_UP_MS = 60_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;
/** A failure that comes so long after the last is a first one. */
const CALM_MS = 60_000;

/** Requests have uids of their own above this one. */
const PING_UID = 1;

export type SubscriptionState = 'unlinked' | 'asking' | 'live' | 'waiting' | 'disabled';

export interface StreamSubscriptionOptions {
  readonly view: StreamView;
  readonly metrics: SourceMetrics;
  readonly clock: StoreClock;
  readonly instanceId: number;
  readonly modelName: string;
  readonly pageRecords: number;
  /** Neither throws nor waits. */
  readonly send: (frames: Buffer[]) => void;
  readonly onFailure: (reason: 'no_answer' | 'ended' | 'malformed' | 'disabled') => void;
}

export class StreamSubscription {
  state: SubscriptionState = 'unlinked';
  readonly #options: StreamSubscriptionOptions;
  #uid = PING_UID;
  #pageRecords: number;
  #failures = 0;
  #isStopped = false;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  /** Of the answer, or of the next attempt. */
  #cancelTimer: (() => void) | null = null;
  #cancelPing: (() => void) | null = null;
  #cancelGiveUp: (() => void) | null = null;

  constructor(options: StreamSubscriptionOptions) {
    this.#options = options;
    this.#pageRecords = options.pageRecords;
  }

  takeLink(isLinked: boolean): void {
    // A link that was being made when it stopped.
    if (this.#isStopped) return;
    this.#stopTimers();
    if (isLinked) {
      this.#ask();
      this.#ping();
      return;
    }
    // A message that is too large for a link ends it: what was asked for may have been one.
    if (this.state === 'asking') this.#halvePage();
    else this.#pageRecords = this.#options.pageRecords;
    this.state = 'unlinked';
    this.#mayGiveUp();
  }

  take(frames: readonly Buffer[]): void {
    const message = readStreamFrames(frames, this.#uid);
    if (message === null) {
      this.#options.metrics.malformed.frames++;
      return;
    }
    // What a subscription before sent, and answers to pings.
    if (message.kind === 'foreign') return;
    if (this.state !== 'asking' && this.state !== 'live') return;
    if (message.kind === 'batch') this.#takeBatch(message.payload);
    else this.#fail('ended');
  }

  stop(): void {
    if (this.state === 'live') this.#options.send(cancelFrames(this.#uid));
    this.#stopTimers();
    this.#cancelGiveUp?.();
    this.state = 'unlinked';
    this.#isStopped = true;
    this.#options.view.stop();
  }

  #takeBatch(payload: Uint8Array): void {
    const { view, send } = this.#options;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const acknowledge = (): void => {
      if (this.state === 'live') send(ackFrames(this.#uid));
    };
    const step = view.take(payload, acknowledge);
    if (step === 'next' || step === 'later') {
      this.state = 'live';
      this.#cancelGiveUp?.();
      this.#cancelGiveUp = null;
      if (step === 'next') acknowledge();
    } else if (step === 'again') {
      send(cancelFrames(this.#uid));
      this.#ask();
    } else if (step === 'disabled') {
      this.#fail('disabled');
    } else {
      if (step === 'oversize') this.#halvePage();
      send(cancelFrames(this.#uid));
      this.#fail('malformed');
    }
  }

  #halvePage(): void {
    this.#pageRecords = Math.max(1, this.#pageRecords >> 1);
  }

  #ask(): void {
    const { view, send, clock, instanceId, modelName } = this.#options;
    this.state = 'asking';
    this.#cancelTimer?.();
    const uid = ++this.#uid;
    const { cursor } = view;
    send(subscribeFrames({ uid, instanceId, modelName, cursor, pageRecords: this.#pageRecords }));
    this.#cancelTimer = clock.schedule(() => this.#fail('no_answer'), ANSWER_MS);
    this.#mayGiveUp();
  }

  #fail(reason: 'no_answer' | 'ended' | 'malformed' | 'disabled'): void {
    const { clock, onFailure } = this.#options;
    this.#cancelTimer?.();
    const nowMs = clock.nowMs();
    if (nowMs - this.#failedAtMs > CALM_MS + MAX_RETRY_MS) this.#failures = 0;
    this.#failedAtMs = nowMs;
    this.state = reason === 'disabled' ? 'disabled' : 'waiting';
    const exponent = reason === 'disabled' ? 16 : Math.min(this.#failures++, 16);
    const delayMs = Math.min(FIRST_RETRY_MS * 2 ** exponent, MAX_RETRY_MS);
    this.#cancelTimer = clock.schedule(() => this.#ask(), delayMs);
    this.#mayGiveUp();
    onFailure(reason);
  }

  #ping(): void {
    const { clock, send, instanceId } = this.#options;
    this.#cancelPing = clock.schedule(() => {
      send(pingFrames(PING_UID, instanceId));
      this.#ping();
    }, PING_MS);
  }

  #mayGiveUp(): void {
    const { clock, view } = this.#options;
    this.#cancelGiveUp ??= clock.schedule(() => {
      this.#cancelGiveUp = null;
      view.giveUp();
      if (this.state === 'asking') this.#ask();
    }, GIVE_UP_MS);
  }

  #stopTimers(): void {
    this.#cancelTimer?.();
    this.#cancelPing?.();
    this.#cancelTimer = null;
    this.#cancelPing = null;
  }
}
