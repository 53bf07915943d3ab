/** What `/metrics` reads, of a relay that does not run. */
import { DiscoveryMetrics } from '../../src/metrics/discovery-metrics.ts';
import type { MetricsSource, RelayReading } from '../../src/metrics/metrics-source.ts';
import { RecoveryCounts } from '../../src/metrics/recovery-counts.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';

export function relay(dpRank: number, overrides: Partial<RelayReading> = {}): RelayReading {
  return { dpRank, metrics: new RelayMetrics(), engineConnected: true, degraded: [], ...overrides };
}

export function sourceOf(
  relays: readonly RelayReading[],
  overrides: Partial<MetricsSource> = {},
): MetricsSource {
  return {
    version: '1.2.3',
    labels: { namespace: 'my-ns.é', component: 'back/end', workerIdHex: 'ff00ab' },
    relays: () => relays,
    discovery: new DiscoveryMetrics(),
    recovery: () => new RecoveryCounts(),
    plane: () => ({
      connected: true,
      outboxBytes: 4096,
      outboxMessages: 3,
      disconnects: 2,
      reconnects: 1,
      refusals: 3,
    }),
    load: () => null,
    stores: () => [],
    objectStream: () => null,
    chunks: () => null,
    lmcache: () => null,
    coordinator: () => null,
    eventLoopLagSeconds: () => 0.0125,
    ...overrides,
  };
}
