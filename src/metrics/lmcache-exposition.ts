/** LMCache's metrics on the metrics page, in the form that LMCache's own page has. */
import type { Metric, Registry } from 'prom-client';
import { LMCACHE_COUNTERS, type LmcacheCounter, type LmcacheFamily } from './lmcache-families.ts';
import { LMCACHE_HISTOGRAMS, type LmcacheHistogram } from './lmcache-histograms.ts';
import type { HistogramSeries, Labels, LmcacheSeries } from './lmcache-series.ts';

/** Where the bus stood when the last message was sent. */
export interface LmcacheBusReading {
  readonly queueDepth: number;
  readonly drainLagSeconds: number;
  readonly busDropped: number;
  readonly exceptions: Readonly<Record<string, number>>;
}

export interface LmcacheReading {
  readonly series: LmcacheSeries;
  /** Null before the first message. */
  readonly bus: LmcacheBusReading | null;
}

interface Sample {
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

type Kind = 'counter' | 'gauge' | 'histogram';

const BUS_SCOPE = 'lmcache.event_bus';

export function registerLmcacheMetrics(
  registry: Registry,
  reading: () => LmcacheReading | null,
): void {
  for (const [key, family] of Object.entries(LMCACHE_COUNTERS)) {
    register(registry, 'counter', family, () => {
      const all = reading()?.series.counters.get(key as LmcacheCounter);
      return [...(all?.values() ?? [])];
    });
  }
  for (const [key, family] of Object.entries(LMCACHE_HISTOGRAMS)) {
    register(registry, 'histogram', family, () => {
      const all = reading()?.series.histograms.get(key as LmcacheHistogram);
      return [...(all?.values() ?? [])].flatMap((series) => bucketsOf(family[0], series));
    });
  }
  registerBus(registry, reading);
}

function registerBus(registry: Registry, reading: () => LmcacheReading | null): void {
  const name = 'lmcache_mp_event_bus';
  const one = (value: number | undefined): Sample[] =>
    value === undefined ? [] : [{ labels: {}, value }];
  const depth = [`${name}_queue_depth`, BUS_SCOPE, 'Events that wait in the bus'] as const;
  register(registry, 'gauge', depth, () => one(reading()?.bus?.queueDepth));
  const lag = [`${name}_drain_lag_seconds`, BUS_SCOPE, 'Age of the oldest of them'] as const;
  register(registry, 'gauge', lag, () => one(reading()?.bus?.drainLagSeconds));
  const dropped = [
    `${name}_dropped_events_total`,
    BUS_SCOPE,
    'Events that the full bus refused',
  ] as const;
  register(registry, 'counter', dropped, () => one(reading()?.bus?.busDropped));
  const exceptions = [
    `${name}_subscriber_exceptions_total`,
    BUS_SCOPE,
    'Exceptions of subscribers of the bus',
  ] as const;
  register(registry, 'counter', exceptions, () =>
    Object.entries(reading()?.bus?.exceptions ?? {}).map(([subscriber_name, value]) => ({
      labels: { subscriber_name },
      value,
    })),
  );
}

/** prom-client's own classes keep values of their own; the registry only asks for these. */
function register(
  registry: Registry,
  type: Kind,
  [name, scope, help]: LmcacheFamily,
  read: () => readonly Sample[],
): void {
  const common = { otel_scope_name: scope, otel_scope_schema_url: '', otel_scope_version: '' };
  const get = async (): Promise<object> => ({
    name,
    help,
    type,
    aggregator: 'sum',
    values: read().map((sample) => ({ ...sample, labels: { ...sample.labels, ...common } })),
  });
  const metric = { name, help, type, get, getForPromString: get, reset: () => {} };
  registry.registerMetric(metric as unknown as Metric);
}

function bucketsOf(name: string, { labels, histogram }: HistogramSeries): Sample[] {
  const samples: Sample[] = [];
  let cumulative = 0;
  for (const [bucket, count] of histogram.counts.entries()) {
    cumulative += count;
    const bound = histogram.bounds[bucket];
    const le = bound === undefined ? '+Inf' : bound.toFixed(1);
    samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: cumulative });
  }
  samples.push({ metricName: `${name}_sum`, labels, value: histogram.sum });
  samples.push({ metricName: `${name}_count`, labels, value: cumulative });
  return samples;
}
