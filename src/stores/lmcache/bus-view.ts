/**
 * BusView: all that is made of the messages of LMCache's bridge. An event is checked, then handed to each part.
 *
 * Restart  of the publisher: what was under way is given up, sums go on.
 * Pure     no clock: `advance` tells the time of the wall, which only windows and time-outs need.
 */
import {
  type BusBatchFault,
  type BusStatus,
  readBusBatch,
} from '../../engines/lmcache/bus-batch.ts';
import { ContractChecker } from '../../engines/lmcache/contract-checker.ts';
import type { BusEvent } from '../../engines/lmcache/contracts.ts';
import { AdapterTraffic } from './adapter-traffic.ts';
import { BusMetrics, type BusMetricsOptions } from './bus-metrics.ts';
import { FailureWatch } from './failure-watch.ts';
import { HitRate } from './hit-rate.ts';
import { RequestTracker } from './request-tracker.ts';

/** Messages come in order: a clock that is further back has been set, and the windows would wait for it. */
const MAX_CLOCK_STEP_S = 60;

export interface BusViewOptions extends BusMetricsOptions {
  /** A request without news is given up after so many seconds of event time. */
  readonly requestTimeoutS: number;
  /** Told of every event that keeps its contract, as far as it does. */
  readonly onEvent?: (event: BusEvent) => void;
}

export class BusView {
  readonly checker: ContractChecker = new ContractChecker();
  readonly metrics: BusMetrics;
  readonly requests: RequestTracker;
  readonly traffic: AdapterTraffic;
  readonly failures: FailureWatch = new FailureWatch();
  readonly hitRate: HitRate = new HitRate();
  /** As the last message told; null before the first. */
  status: BusStatus | null = null;
  /** When that was, by the publisher's clock in seconds. */
  sentAt = 0;
  /** Entries of messages that were no events. */
  badEvents = 0;
  readonly #onEvent: ((event: BusEvent) => void) | undefined;

  constructor(options: BusViewOptions) {
    const { maxPending, requestTimeoutS, onEvent } = options;
    this.#onEvent = onEvent;
    this.metrics = new BusMetrics(options);
    this.requests = new RequestTracker({ maxPending, timeoutS: requestTimeoutS });
    this.traffic = new AdapterTraffic(options);
  }

  /** What is wrong with the message; null where nothing is. */
  take(payload: Uint8Array): BusBatchFault | null {
    const batch = readBusBatch(payload);
    if (typeof batch === 'string') return batch;
    this.status = batch.status;
    if (batch.sentAt < this.sentAt - MAX_CLOCK_STEP_S) {
      this.failures.rewind(batch.sentAt);
      this.hitRate.rewind(batch.sentAt);
    }
    this.sentAt = batch.sentAt;
    this.badEvents += batch.badEvents;
    const { version } = batch.status;
    this.metrics.noteVersion(version);
    for (const raw of batch.events) {
      const event = this.checker.check(raw, version);
      if (event === null) continue;
      this.metrics.push(event);
      this.requests.push(event);
      this.traffic.push(event);
      this.failures.push(event);
      this.hitRate.push(event);
      this.#onEvent?.(event);
    }
    return null;
  }

  restart(): void {
    this.metrics.restart();
    this.requests.restart();
    this.traffic.restart();
  }

  /** `now` by the publisher's clock, as events have it. */
  advance(now: number): void {
    this.failures.advance(now);
    this.hitRate.advance(now);
    this.requests.advance(now);
  }
}
