/** LoadMetrics: what the worker-load publisher counts. There only where it is turned on. */
import type { Registry } from 'prom-client';
import { type Counts, zeroCounts } from './counts.ts';
import type { MetricsSource } from './metrics-source.ts';
import { PUBLISH_FAILURE_REASONS, type PublishFailureReason } from './relay-metrics.ts';
import { scrapedCounter, scrapedGauge } from './scraped.ts';

/** Why a look at the engine's metrics page did not tell the load of every rank. */
export const LOAD_FAULTS = [
  'unreachable',
  'timeout',
  'status',
  'too_large',
  'too_many_lines',
  'missing_series',
  'bad_value',
] as const;
export type LoadFault = (typeof LOAD_FAULTS)[number];

export class LoadMetrics {
  /** Looks at the engine's page, good or not. */
  scrapes = 0;
  /** At most one a look. */
  readonly faults: Counts<LoadFault> = zeroCounts(LOAD_FAULTS);
  publishedMessages = 0;
  resentMessages = 0;
  readonly publishFailures: Counts<PublishFailureReason> = zeroCounts(PUBLISH_FAILURE_REASONS);
  /** As last read, by rank; a rank whose load is unknown is left out. */
  readonly kvUsedBlocks: Map<number, number> = new Map();
}

export function registerLoadMetrics(registry: Registry, source: MetricsSource): void {
  const counters = [
    ['engine_scrapes_total', "Looks at the engine's metrics page", 'scrapes'],
    ['load_messages_total', 'Worker-load messages handed to the event plane', 'publishedMessages'],
  ] as const;
  for (const [name, help, field] of counters) {
    const family = { name: `kvrelay_${name}`, help, labelNames: [] };
    scrapedCounter(registry, family, (add) => {
      const metrics = source.load();
      if (metrics) add({}, metrics[field]);
    });
  }
  const byReason = [
    [
      'engine_scrape_faults_total',
      "Looks at the engine's metrics page that did not tell the load of every rank",
      'faults',
    ],
    [
      'load_publish_failures_total',
      'Worker-load messages that could not be published',
      'publishFailures',
    ],
  ] as const;
  for (const [name, help, field] of byReason) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['reason'] as const };
    scrapedCounter(registry, family, (add) => {
      const counts = Object.entries(source.load()?.[field] ?? {});
      for (const [reason, count] of counts) add({ reason }, count);
    });
  }
  const used = {
    name: 'kvrelay_engine_kv_used_blocks',
    help: 'Blocks the engine says are in use; no series while that is unknown',
    labelNames: ['dp_rank'] as const,
  };
  scrapedGauge(registry, used, (add) => {
    for (const [dpRank, blocks] of source.load()?.kvUsedBlocks ?? [])
      add({ dp_rank: String(dpRank) }, blocks);
  });
}
