/**
 * LoadMonitor: looks at the engine's metrics page and tells routers the load of its ranks.
 *
 * In       the page, each SCRAPE_EVERY_MS after the end of the look before.
 * Out      load events of all ranks under one publisher, on the sink it is given.
 * Faults   counted under fixed labels and warned a bounded number of times; the ranks that a look did
 *          not tell are unknown from then on, and nothing is said of them.
 */
import { Subject, type Subscription } from 'rxjs';
import type { Warner } from '../../log.ts';
import type { LoadFault, LoadMetrics } from '../../metrics/load-metrics.ts';
import type { PlaneMessage } from '../../protocol/envelope.ts';
import type { LoadEventEncoder } from '../../protocol/load-event.ts';
import { type LoadRanks, readLoad } from './engine-series.ts';
import { publishLoad } from './publish-load.ts';
import { ScrapeError, scrape } from './scrape.ts';

const SCRAPE_EVERY_MS = 2000;
const SCRAPE_TIMEOUT_MS = 1500;

/** What an operator reads; the other faults bring a text of their own. */
const FAULT_TEXTS: Partial<Record<LoadFault, string>> = {
  too_many_lines: 'the page has too many lines',
  missing_series: 'the page lacks a series of a rank',
  bad_value: 'a value on the page cannot be true',
};

export interface LoadMonitorOptions extends LoadRanks {
  /** The engine's metrics page, http or https. */
  readonly url: string;
  readonly encoder: LoadEventEncoder;
  /** Takes each message at once; neither throws nor waits. */
  readonly send: (message: PlaneMessage) => void;
  readonly warner: Pick<Warner, 'warn'>;
  /** Shorter only where a test does not want to wait. */
  readonly everyMs?: number;
  readonly timeoutMs?: number;
}

export class LoadMonitor {
  readonly #options: LoadMonitorOptions;
  readonly #metrics: LoadMetrics;
  readonly #usedBlocks: readonly Subject<number | null>[];
  readonly #subscriptions: readonly Subscription[];
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: LoadMonitorOptions, metrics: LoadMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#usedBlocks = Array.from({ length: options.dpSize }, () => new Subject());
    this.#subscriptions = this.#usedBlocks.map((usedBlocks$, offset) =>
      usedBlocks$
        .pipe(publishLoad())
        .subscribe((blocks) => this.#publish(options.dpRank + offset, blocks)),
    );
  }

  start(): void {
    this.#looking = this.#look();
  }

  /** What was read last is not told again: the worker is leaving. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { url, everyMs = SCRAPE_EVERY_MS, timeoutMs = SCRAPE_TIMEOUT_MS } = this.#options;
    const { signal } = this.#stop;
    let page: string | null = null;
    try {
      page = await scrape(url, timeoutMs, signal);
    } catch (error) {
      if (!(error instanceof ScrapeError)) throw error;
      if (!signal.aborted) this.#noteFault(error.fault, error.message);
    }
    if (signal.aborted) return;
    this.#metrics.scrapes++;
    if (page === null) this.#note(this.#usedBlocks.map(() => null));
    else this.#read(page);
    this.#timer = setTimeout(() => this.start(), everyMs);
  }

  #read(page: string): void {
    const { usedBlocks, fault } = readLoad(page, this.#options);
    if (fault !== null) this.#noteFault(fault, FAULT_TEXTS[fault] ?? fault);
    this.#note(usedBlocks);
  }

  #note(usedBlocks: readonly (number | null)[]): void {
    for (const [offset, blocks] of usedBlocks.entries()) {
      const dpRank = this.#options.dpRank + offset;
      if (blocks === null) this.#metrics.kvUsedBlocks.delete(dpRank);
      else this.#metrics.kvUsedBlocks.set(dpRank, blocks);
      this.#usedBlocks[offset]?.next(blocks);
    }
  }

  /** Never with text of the page: it is not trusted. */
  #noteFault(fault: LoadFault, reason: string): void {
    this.#metrics.faults[fault]++;
    const fields = { url: this.#options.url, reason };
    this.#options.warner.warn(`engine_metrics_${fault}`, fields, 'the load of a rank is unknown');
  }

  #publish(dpRank: number, kvUsedBlocks: number): void {
    const { encoder, send } = this.#options;
    if (encoder.workerId === null) return;
    // No page names what Dynamo means by active decode blocks, so they stay unknown.
    send(encoder.encode({ dpRank, activeDecodeBlocks: null, kvUsedBlocks }, Date.now()));
    this.#metrics.publishedMessages++;
  }
}
