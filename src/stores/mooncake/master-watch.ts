/**
 * MasterWatch: looks at the master's publisher every EVERY_MS, and at what its counts say.
 *
 * Restart   it has used fewer numbers than were seen here, or as many for other events: it is another
 *           process, though no message of it has come yet.
 * Tail      it had used more numbers at the look before than have been seen by now: the last messages
 *           were lost, which no gap has shown yet. Told once for each such number.
 * Notices   that it publishes nothing, drops events, leaves events out for want of a key, or is away.
 */

import type { StoreClock } from '../store-clock.ts';
import type { SourceNotice } from '../store-source.ts';
import { type Master, MasterError, type PublisherStatus } from './master.ts';

const EVERY_MS = 10_000;
/** How long after the last drop that is told. */
const DROPS_SHOWN_MS = 300_000;

export interface MasterWatchOptions {
  readonly master: Master;
  readonly clock: StoreClock;
  readonly lastSequence: () => bigint | null;
  readonly lastEventId: () => bigint | null;
  /** That its messages have shown, ever. */
  readonly restarts: () => number;
  readonly onRestart: () => void;
  readonly onLostTail: () => void;
  readonly onFault: (error: MasterError) => void;
}

interface Seen {
  readonly sequence: bigint | null;
  readonly eventId: bigint | null;
}

export class MasterWatch {
  readonly #options: MasterWatchOptions;
  #status: PublisherStatus | null = null;
  #fault: MasterError | null = null;
  #droppedAtMs: number | null = null;
  #usedBefore = 0n;
  /** A restart was told, and no message of the new life has been seen. */
  #isAnotherLife = false;
  /** Of the life that the last look was in. */
  #toldUpTo = 0n;
  #restarts = 0;
  #cancel: (() => void) | null = null;
  #isStopped = false;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: MasterWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#looking = this.#look();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#looking;
  }

  notices(): SourceNotice[] {
    if (this.#fault !== null) {
      const { message, remedy } = this.#fault;
      return [{ message: `The master does not answer (${message})`, remedy: remedy ?? '' }];
    }
    return this.#status === null ? [] : this.#noticesOf(this.#status);
  }

  async #look(): Promise<void> {
    const { master, clock, onFault, lastSequence, lastEventId } = this.#options;
    const before = { sequence: lastSequence(), eventId: lastEventId() };
    try {
      const status = await master.status();
      if (this.#isStopped) return;
      this.#fault = null;
      this.#take(status, before);
    } catch (error) {
      if (!(error instanceof MasterError)) throw error;
      if (this.#isStopped) return;
      this.#fault = error;
      onFault(error);
    }
    this.#cancel = clock.schedule(() => this.start(), EVERY_MS);
  }

  #take(status: PublisherStatus, before: Seen): void {
    const { clock } = this.#options;
    const dropped = this.#status?.droppedEvents ?? status.droppedEvents;
    if (status.droppedEvents > dropped) this.#droppedAtMs = clock.nowMs();
    this.#status = status;
    // Each message has used one number, and each dropped event one more.
    const used = BigInt(status.publishedBatches) + BigInt(status.droppedEvents);
    const usedBefore = this.#usedBefore;
    this.#usedBefore = used;
    if (!status.enabled) return;
    this.#judge(used, usedBefore, BigInt(status.publishedEvents), before);
  }

  /** `before`: what had been seen when the question went out. Messages may have overtaken the answer. */
  #judge(used: bigint, usedBefore: bigint, publishedEvents: bigint, before: Seen): void {
    const { lastSequence, restarts, onRestart, onLostTail } = this.#options;
    const isNewLife = this.#restarts !== restarts();
    if (isNewLife) {
      this.#restarts = restarts();
      this.#toldUpTo = 0n;
    }
    if (before.sequence !== null) {
      this.#isAnotherLife = false;
      // Events have ids from 1 without a hole, so the last one is their count.
      const isOther = before.eventId !== null && before.eventId !== publishedEvents;
      if (used < before.sequence || (used === before.sequence && isOther)) {
        this.#toldUpTo = 0n;
        this.#isAnotherLife = true;
        onRestart();
        return;
      }
    }
    const seen = lastSequence() ?? (this.#isAnotherLife ? 0n : null);
    // The look before was in another life.
    if (isNewLife || seen === null || usedBefore <= seen || used < usedBefore) return;
    if (usedBefore <= this.#toldUpTo) return;
    this.#toldUpTo = usedBefore;
    onLostTail();
  }

  #noticesOf(status: PublisherStatus): SourceNotice[] {
    const notices: SourceNotice[] = [];
    if (!status.enabled) {
      notices.push({
        message: 'The master publishes no KV events',
        remedy:
          'Start a master that has them built in with --enable_kv_events=true, ' +
          '--kv_events_bind_endpoint and --kv_events_backend_id',
      });
    }
    const { droppedEvents, skippedKeylessEvents } = status;
    const agoMs = this.#options.clock.nowMs() - (this.#droppedAtMs ?? Number.NEGATIVE_INFINITY);
    if (agoMs < DROPS_SHOWN_MS) {
      notices.push({
        message: `The queue of the master's publisher overflows: ${droppedEvents} events dropped`,
        remedy: 'Raise --kv_events_queue_capacity of the master',
      });
    }
    if (skippedKeylessEvents > 0) {
      notices.push({
        message: `The master leaves events out for want of a key: ${skippedKeylessEvents} so far`,
        remedy: 'Start the master with --kv_events_emit_object_key=true',
      });
    }
    return notices;
  }
}
