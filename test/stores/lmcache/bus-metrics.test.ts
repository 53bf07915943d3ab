import { expect, test } from 'vitest';
import { BusMetrics } from '../../../src/stores/lmcache/bus-metrics.ts';
import { busEvent, objectKeys } from './bus-events.ts';

function metricsWith(changes: Partial<ConstructorParameters<typeof BusMetrics>[0]> = {}) {
  const defaults = { sampleRate: 1, maxTracked: 100, maxPending: 100, timeoutS: 3600 };
  return new BusMetrics({ ...defaults, maxLabelValues: 100, ...changes });
}

test('an event without the keys it should have moves what it can', () => {
  const metrics = metricsWith();
  metrics.push(busEvent('L1_WRITE_FINISHED', {}));
  metrics.push(busEvent('L2_STORE_SUBMITTED', {}));
  metrics.push(busEvent('MP_RETRIEVE_END', {}));
  expect(metrics.series.total('l1_write')).toBe(0);
  expect(metrics.series.total('l2_store_submitted')).toBe(1);
  expect(metrics.series.total('num_finished_retrieves')).toBe(1);
});

test('above the bound the oldest chunks are followed no more, and counted', () => {
  const metrics = metricsWith({ maxTracked: 10 });
  metrics.push(busEvent('L1_WRITE_FINISHED', { keys: objectKeys(25) }));
  expect(metrics.counts.untracked).toBe(15);
  metrics.push(busEvent('L1_KEYS_EVICTED', { keys: objectKeys(25) }, { at: 5 }));
  const [lifetimes] = metrics.series.histograms.get('l1_chunk_lifetime')?.values() ?? [];
  expect(lifetimes?.histogram.count).toBe(10);
});

test('a sample of chunks is followed, the same at each event', () => {
  const metrics = metricsWith({ sampleRate: 0.25, maxTracked: 100_000 });
  const keys = objectKeys(4096).map((key, index) => {
    key.chunk_hash.set([index % 256, index >> 8], 0);
    return key;
  });
  metrics.push(busEvent('L1_WRITE_FINISHED', { keys }));
  metrics.push(busEvent('L1_READ_FINISHED', { keys }, { at: 2 }));
  const [gaps] = metrics.series.histograms.get('l1_chunk_reuse_gap')?.values() ?? [];
  expect(gaps?.histogram.count).toBe(1024);
  expect(metrics.series.total('l1_read')).toBe(4096);
});

test('starts without an end are given up, ends without a start counted', () => {
  const metrics = metricsWith({ maxPending: 2, timeoutS: 60 });
  const store = { adapter_index: 0, total_bytes: 8 };
  for (let task_id = 0; task_id < 5; task_id++)
    metrics.push(busEvent('L2_STORE_SUBMITTED', { ...store, task_id }));
  metrics.push(busEvent('L2_STORE_SUBMITTED', { ...store, task_id: 9 }, { at: 100 }));
  metrics.push(busEvent('MP_STORE_END', { device: 'd', total_bytes: 8 }));
  expect(metrics.counts.unpaired).toEqual({ timeout: 2, evicted: 3, end_alone: 1 });
});
