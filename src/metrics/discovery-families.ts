/** The families of discovery, one series for each label value from the start. */
import type { Registry } from 'prom-client';
import type { DiscoveryMetrics } from './discovery-metrics.ts';
import type { MetricsSource } from './metrics-source.ts';
import { scrapedCounter } from './scraped.ts';

const COUNTERS: readonly (readonly [
  name: string,
  help: string,
  read: (discovery: DiscoveryMetrics) => number,
])[] = [
  ['announcements_total', 'Sources announced to routers', (d) => d.announcements],
  [
    'ambiguities_total',
    'Times that another source claimed the same worker and rank',
    (d) => d.ambiguities,
  ],
  [
    'evicted_records_total',
    'Records of an earlier life of this relay that were taken away',
    (d) => d.evictedRecords,
  ],
];

export function registerDiscoveryMetrics(registry: Registry, { discovery }: MetricsSource): void {
  for (const [name, help, read] of COUNTERS) {
    const family = { name: `kvrelay_discovery_${name}`, help, labelNames: [] };
    scrapedCounter(registry, family, (add) => add({}, read(discovery)));
  }
  const faults = {
    name: 'kvrelay_discovery_faults_total',
    help: 'Reads, writes and watches of discovery that failed',
    labelNames: ['reason'] as const,
  };
  scrapedCounter(registry, faults, (add) => {
    for (const [reason, count] of Object.entries(discovery.faults)) add({ reason }, count);
  });
}
