/** An LMCache beside the engine as `/api/status` and the metrics show it. */
import type { LmcacheSource } from './lmcache-source.ts';
import { totalOf } from './metrics/counts.ts';
import { type DegradedNotice, describeDegraded } from './metrics/degraded.ts';
import type { LmcacheSeries } from './metrics/lmcache-series.ts';
import type { LmcacheSourceReading } from './metrics/lmcache-source-metrics.ts';
import type { StoreReading } from './metrics/metrics-source.ts';
import { SourceMetrics } from './metrics/source-metrics.ts';
import type { LmcacheHitRate, LmcacheShare, LmcacheStatus } from './status/lmcache-status.ts';
import type { SourceStatus } from './status/status-source.ts';

const LMCACHE = 'lmcache';
const MAX_SHARES = 16;
const MAX_VIOLATIONS = 100;
const MAX_FAILURES = 50;

export function lmcacheStatus(source: LmcacheSource): LmcacheStatus {
  source.advance();
  const { listener, link, view } = source;
  const { series } = view.metrics;
  const { requests, checker, status } = view;
  return {
    endpoint: listener.endpoint,
    connected: listener.isConnected,
    replay: listener.replay,
    version: status?.version ?? null,
    last_seq: listener.lastSequence?.toString() ?? null,
    last_message_age_ms: source.lastMessageAgeMs,
    degraded: lmcacheNotices(source),
    events: sumOf(checker.events.values()) + checker.unknownEvents,
    losses: {
      lost_messages: link.lostBatches,
      bridge_dropped: (status?.bridgeDropped ?? 0) + (status?.bridgeUnencodable ?? 0),
      bus_dropped: status?.busDropped ?? 0,
      malformed: totalOf(link.malformed),
      restarts: link.engineRestarts,
    },
    requests: {
      in_flight: requests.inFlight,
      open_transfers: requests.openTransfers,
      completed: requests.completed,
      timed_out: requests.timedOut,
    },
    hit_rate: hitRateOf(source),
    adapters: [...view.traffic.adapters].map(([l2_name, totals]) => ({
      l2_name,
      stored_bytes: totals.storedBytes,
      loaded_bytes: totals.loadedBytes,
      store_tasks: totals.storeTasks,
      load_tasks: totals.loadTasks,
      failed_stores: totals.failedStores,
      store_gb_per_s: meanOf(series, 'l2_store_throughput', l2_name),
      load_gb_per_s: meanOf(series, 'l2_load_throughput', l2_name),
    })),
    l1: {
      read: series.total('l1_read'),
      written: series.total('l1_write'),
      evicted: series.total('l1_evicted'),
    },
    l2: { evicted: series.total('l2_evicted_objects') },
    failures: failuresOf(source),
    models: sharesOf(series, 'model_name'),
    salts: sharesOf(series, 'cache_salt'),
    contracts: {
      violations: checker.violations.slice(0, MAX_VIOLATIONS),
      additive_keys: sumOf(checker.additiveKeys.values()),
      unknown_events: checker.unknownEvents,
      unknown_types: [...checker.unknownNames],
    },
  };
}

/** The same among the sources: it holds no objects, and is not asked for any. */
export function lmcacheSourceStatus(source: LmcacheSource): SourceStatus {
  const { listener, link, view } = source;
  const events = sumOf(view.checker.events.values());
  return {
    source: LMCACHE,
    endpoint: listener.endpoint,
    connected: listener.isConnected,
    suspect: source.hasRecentLoss,
    degraded: lmcacheNotices(source),
    objects: 0,
    last_seq: listener.lastSequence?.toString() ?? null,
    last_message_age_ms: source.lastMessageAgeMs,
    held_messages: listener.heldBatches,
    counters: {
      connects: listener.connects,
      messages: link.engineBatches,
      received: events,
      applied: events,
      repeated: 0,
      lost_messages: link.lostBatches,
      restarts: link.engineRestarts,
      malformed: totalOf(link.malformed),
      dropped_events: view.checker.unknownEvents + view.badEvents,
      invalidated_objects: 0,
    },
    reconciliation: null,
    placement: null,
  };
}

export function lmcacheStoreReading(source: LmcacheSource): StoreReading {
  const { listener, link, view } = source;
  const metrics = new SourceMetrics();
  metrics.connects = listener.connects;
  metrics.messages = link.engineBatches;
  metrics.bytes = link.engineBytes;
  metrics.lostMessages = link.lostBatches;
  metrics.restarts = link.engineRestarts;
  Object.assign(metrics.malformed, link.malformed);
  metrics.droppedEvents.unknown_type = view.checker.unknownEvents;
  metrics.droppedEvents.bad_field = view.badEvents;
  return {
    name: LMCACHE,
    metrics,
    connected: listener.isConnected,
    suspect: source.hasRecentLoss,
    objects: 0,
    received: view.checker.events,
  };
}

/** What an operator should look at. */
export function lmcacheNotices(source: LmcacheSource): DegradedNotice[] {
  const { view, listener } = source;
  return [
    ...(listener.isConnected ? [] : [describeDegraded('lmcache_disconnected')]),
    ...(source.hasRecentLoss ? [describeDegraded('lmcache_events_lost')] : []),
    ...(view.failures.isAlarming
      ? [
          describeDegraded(
            'lmcache_read_failures',
            `${view.failures.recentKeys} keys within 5 minutes`,
          ),
        ]
      : []),
  ];
}

export function lmcacheReading(source: LmcacheSource): LmcacheSourceReading {
  source.advance();
  const { view } = source;
  const { requests, checker, metrics, status } = view;
  return {
    series: metrics.series,
    bus: status,
    failing: view.failures.isAlarming,
    inFlight: requests.inFlight,
    openTransfers: requests.openTransfers,
    bridgeDropped: status?.bridgeDropped ?? 0,
    bridgeUnencodable: status?.bridgeUnencodable ?? 0,
    outOfOrder: requests.outOfOrder,
    untracked: metrics.counts.untracked,
    unpaired: metrics.counts.unpaired,
    requests: {
      completed: requests.completed,
      timed_out: requests.timedOut,
      evicted: requests.evicted,
      abandoned: requests.abandoned,
    },
    additiveKeys: checker.additiveKeys,
    violations: checker.violations,
  };
}

function hitRateOf({ view: { hitRate, metrics } }: LmcacheSource): LmcacheHitRate {
  const requested = metrics.series.total('lookup_requested');
  return {
    minute: hitRate.over(1),
    ten_minutes: hitRate.over(10),
    hour: hitRate.over(60),
    total: requested > 0 ? metrics.series.total('lookup_hit') / requested : null,
    by_minute: hitRate.byMinute(),
  };
}

/** Named by what failed and, where LMCache tells it, why; the most frequent ones. */
function failuresOf({ view }: LmcacheSource): Record<string, number> {
  const failures = new Map<string, number>();
  const add = (name: string, count: number): void => {
    if (count > 0) failures.set(name, (failures.get(name) ?? 0) + count);
  };
  const { counters } = view.metrics.series;
  for (const name of ['l1_allocation_failure', 'l1_read_failure', 'l2_prefetch_failure'] as const) {
    for (const { labels, value } of counters.get(name)?.values() ?? [])
      add([name, labels.during, labels.reason].filter(Boolean).join(' '), value);
  }
  for (const { labels, value } of counters.get('timeouts')?.values() ?? [])
    add(`timeout ${labels.exception_type ?? ''}`, value);
  for (const { failedStores } of view.traffic.adapters.values()) add('l2_store', failedStores);
  add('l2_load', view.traffic.failedLoads);
  const largest = [...failures].sort(([, one], [, other]) => other - one);
  const shown = largest.slice(0, MAX_FAILURES);
  const rest = sumOf(largest.slice(MAX_FAILURES).map(([, count]) => count));
  return Object.fromEntries(rest > 0 ? [...shown, ['other', rest]] : shown);
}

function sharesOf(series: LmcacheSeries, label: 'model_name' | 'cache_salt'): LmcacheShare[] {
  const shares = new Map<string, { requested_tokens: number; hit_tokens: number }>();
  const addAll = (
    name: 'lookup_requested' | 'lookup_hit',
    field: 'requested_tokens' | 'hit_tokens',
  ): void => {
    for (const { labels, value } of series.counters.get(name)?.values() ?? []) {
      const key = labels[label] ?? '';
      const share = shares.get(key) ?? { requested_tokens: 0, hit_tokens: 0 };
      share[field] += value;
      shares.set(key, share);
    }
  };
  addAll('lookup_requested', 'requested_tokens');
  addAll('lookup_hit', 'hit_tokens');
  return [...shares]
    .map(([name, share]) => ({ name, ...share }))
    .sort((one, other) => other.requested_tokens - one.requested_tokens)
    .slice(0, MAX_SHARES);
}

function meanOf(
  series: LmcacheSeries,
  name: 'l2_store_throughput' | 'l2_load_throughput',
  l2_name: string,
): number | null {
  for (const { labels, histogram } of series.histograms.get(name)?.values() ?? [])
    if (labels.l2_name === l2_name && histogram.count > 0) return histogram.sum / histogram.count;
  return null;
}

function sumOf(counts: Iterable<number>): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}
