/** BusMetrics: the metrics of LMCache's own subscribers, from its events. Pure: no clock but the events'. */
import { type BusEvent, type EventName, isInVersion } from '../../engines/lmcache/contracts.ts';
import { LmcacheSeries } from '../../metrics/lmcache-series.ts';
import { deriveBlend, deriveBlendPhases } from './derive-blend.ts';
import { deriveBlocks } from './derive-blocks.ts';
import { deriveL1 } from './derive-l1.ts';
import { deriveL2, deriveL2Throughput } from './derive-l2.ts';
import { deriveL1Lifecycle, deriveReuse } from './derive-lifecycle.ts';
import { deriveLookup } from './derive-lookup.ts';
import { deriveTransfers, deriveTransferThroughput } from './derive-transfers.ts';
import { DeriverCounts, type DeriverDeps, type DeriverOptions, type Handlers } from './deriver.ts';

const DERIVERS: readonly ((deps: DeriverDeps) => Handlers)[] = [
  deriveL1,
  deriveL1Lifecycle,
  deriveReuse,
  deriveBlocks,
  deriveL2,
  deriveL2Throughput,
  deriveTransfers,
  deriveTransferThroughput,
  deriveLookup,
  deriveBlendPhases,
  deriveBlend,
];

const LIFECYCLE_BOUNDS_SINCE = '0.5.5';

export interface BusMetricsOptions extends DeriverOptions {
  /** Values of each label. */
  readonly maxLabelValues: number;
}

export class BusMetrics {
  readonly series: LmcacheSeries;
  readonly counts: DeriverCounts = new DeriverCounts();
  readonly #options: BusMetricsOptions;
  readonly #handlers = new Map<EventName, ((event: BusEvent) => void)[]>();

  constructor(options: BusMetricsOptions) {
    this.#options = options;
    this.series = new LmcacheSeries(options.maxLabelValues);
    this.restart();
  }

  /** The publisher has begun a new life: nothing that was under way will end, no chunk is there any more. */
  restart(): void {
    this.#handlers.clear();
    this.counts.forgetPairs();
    const deps = { series: this.series, options: this.#options, counts: this.counts };
    for (const derive of DERIVERS) this.#register(derive(deps));
  }

  /** Of the publisher; null where it is not known. */
  noteVersion(version: string | null): void {
    this.series.hasLifecycleBounds =
      version === null || isInVersion(version, { since: LIFECYCLE_BOUNDS_SINCE });
  }

  push(event: BusEvent): void {
    for (const handle of this.#handlers.get(event.name) ?? []) handle(event);
  }

  /** A handler is under the name of the events that it takes. */
  #register(handlers: Handlers): void {
    for (const [name, handle] of Object.entries(handlers)) {
      const list = this.#handlers.get(name as EventName) ?? [];
      list.push(handle as (event: BusEvent) => void);
      this.#handlers.set(name as EventName, list);
    }
  }
}
