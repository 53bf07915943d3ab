/**
 * AdapterTraffic: what each L2 adapter moved and what failed, and failures that should stay near zero.
 *
 * Bounds  `MAX_ADAPTERS` by name; further ones are counted together as `other`.
 */
import type { BusEvent } from '../../engines/lmcache/contracts.ts';
import { amount } from './deriver.ts';
import { type PairBounds, Pairs } from './pairs.ts';
import { shortLabel } from './short-key.ts';

export interface AdapterTotals {
  storedBytes: number;
  loadedBytes: number;
  storeTasks: number;
  loadTasks: number;
  failedStores: number;
}

const MAX_ADAPTERS = 32;
const OTHER = 'other';

export class AdapterTraffic {
  readonly adapters: Map<string, AdapterTotals> = new Map();
  /** Keys that a prefetch asked L2 for and did not get. */
  failedLoads = 0;
  /** Bytes of the load tasks under way, by request and adapter: the end does not tell them again. */
  #loads: Pairs<number>;
  readonly #bounds: PairBounds;

  constructor(bounds: PairBounds) {
    this.#bounds = bounds;
    this.#loads = new Pairs(bounds);
  }

  /** The publisher's request ids begin again: its earlier tasks have no end. */
  restart(): void {
    this.#loads = new Pairs(this.#bounds);
  }

  push(event: BusEvent): void {
    const { name, timestamp, metadata } = event;
    if (name === 'L2_STORE_COMPLETED') {
      const adapter = this.#adapter(metadata.l2_name);
      adapter.storeTasks++;
      adapter.storedBytes += amount(metadata.bytes_transferred);
      adapter.failedStores += amount(metadata.failed_count);
    } else if (name === 'L2_LOAD_TASK_SUBMITTED') {
      const key = `${metadata.request_id} ${metadata.adapter_index}`;
      this.#loads.start(key, timestamp, amount(metadata.total_bytes));
    } else if (name === 'L2_LOAD_TASK_COMPLETED') {
      const adapter = this.#adapter(metadata.l2_name);
      const task = this.#loads.end(`${metadata.request_id} ${metadata.adapter_index}`, timestamp);
      adapter.loadTasks++;
      adapter.loadedBytes += task?.value ?? 0;
    } else if (name === 'L2_PREFETCH_LOAD_COMPLETED') {
      this.failedLoads += amount(metadata.failed_count);
    }
  }

  #adapter(name = OTHER): AdapterTotals {
    const short = shortLabel(name);
    const isKnown = this.adapters.has(short) || this.adapters.size < MAX_ADAPTERS;
    const key = isKnown ? short : OTHER;
    let totals = this.adapters.get(key);
    if (totals === undefined) {
      totals = { storedBytes: 0, loadedBytes: 0, storeTasks: 0, loadTasks: 0, failedStores: 0 };
      this.adapters.set(key, totals);
    }
    return totals;
  }
}
