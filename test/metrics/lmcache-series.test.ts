import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { registerLmcacheMetrics } from '../../src/metrics/lmcache-exposition.ts';
import { LmcacheSeries, MAX_LINES, OVERFLOW_VALUE } from '../../src/metrics/lmcache-series.ts';
import { parsePage } from '../support/prometheus-page.ts';

async function pageOf(series: LmcacheSeries) {
  const registry = new Registry();
  const bus = { queueDepth: 3, drainLagSeconds: 0.5, busDropped: 2, exceptions: { A: 1 } };
  registerLmcacheMetrics(registry, () => ({ series, bus }));
  return registry.metrics();
}

test('a label has so many values; what is beyond shares one series, and is counted', () => {
  const series = new LmcacheSeries(3);
  for (let index = 0; index < 10; index++)
    series.add('lookup_hit', 2, { model_name: 'm', cache_salt: `salt-${index}` });
  series.add('lookup_requested', 1, { model_name: 'm', cache_salt: 'salt-9' });
  series.observe('real_reuse_gap', 1, { cache_salt: 'salt-9' });
  const hits = [...(series.counters.get('lookup_hit')?.values() ?? [])];
  expect(hits.map(({ labels, value }) => [labels.cache_salt, value])).toEqual([
    ['salt-0', 2],
    ['salt-1', 2],
    ['salt-2', 2],
    [OVERFLOW_VALUE, 14],
  ]);
  expect([...series.overflows]).toEqual([['cache_salt', 9]]);
  expect(series.total('lookup_hit')).toBe(20);
});

test('a value that is too long for a label is beyond it too', () => {
  const series = new LmcacheSeries(3);
  series.add('timeouts', 1, { exception_type: 'x'.repeat(201) });
  expect(series.overflows.get('exception_type')).toBe(1);
});

test('a metric has so many series, whatever its labels', () => {
  const series = new LmcacheSeries(1000);
  for (let salt = 0; salt < 100; salt++)
    for (let model = 0; model < 100; model++)
      series.add('lookups', 1, { model_name: `m${model}`, cache_salt: `s${salt}` });
  expect(series.counters.get('lookups')?.size).toBe(5001);
  expect(series.total('lookups')).toBe(10_000);
  expect([...series.overflows]).toEqual([
    ['model_name', 5000],
    ['cache_salt', 5000],
  ]);
});

test('what is no amount moves nothing, 0 makes the series', () => {
  const series = new LmcacheSeries(3);
  for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY]) series.add('lookups', value);
  expect(series.counters.get('lookups')?.size).toBe(0);
  series.add('lookups', 0);
  expect(series.counters.get('lookups')?.size).toBe(1);
});

test('the page has the state of the bus, and no family without a value', async () => {
  const series = new LmcacheSeries(3);
  series.add('lookups', 1, { cache_salt: 'a "quoted" one' });
  const page = parsePage(await pageOf(series));
  expect(Object.fromEntries(page.series)).toEqual({
    'lmcache_mp_lookups_requests_total{cache_salt="a \\"quoted\\" one",otel_scope_name="lmcache.lookup"}': 1,
    'lmcache_mp_event_bus_queue_depth{otel_scope_name="lmcache.event_bus"}': 3,
    'lmcache_mp_event_bus_drain_lag_seconds{otel_scope_name="lmcache.event_bus"}': 0.5,
    'lmcache_mp_event_bus_dropped_events_total{otel_scope_name="lmcache.event_bus"}': 2,
    'lmcache_mp_event_bus_subscriber_exceptions_total{otel_scope_name="lmcache.event_bus",subscriber_name="A"}': 1,
  });
});

test('the page has a bound for all metrics together, which folds and is counted', () => {
  const series = new LmcacheSeries(1000);
  const lines = (): number => {
    let count = 0;
    for (const all of series.counters.values()) count += all.size;
    for (const all of series.histograms.values())
      for (const { histogram } of all.values()) count += histogram.bounds.length + 3;
    return count;
  };
  for (let index = 0; index < 4000; index++) {
    const labels = { device: `d${index % 999}`, engine_id: `e${index % 997}`, model_name: 'm' };
    series.observe('l0_l1_store_throughput', 1, labels);
    series.add('num_chunks_loaded', 1, labels);
  }
  const folded = 2 * (16 + 3);
  expect(lines()).toBeGreaterThan(MAX_LINES - folded);
  expect(lines()).toBeLessThan(MAX_LINES + folded);
  expect(series.total('num_chunks_loaded')).toBe(4000);
  expect(series.overflows.get('device')).toBeGreaterThan(0);
});
