import { expect, test } from 'vitest';
import { DEGRADED_CODES, describeDegraded } from '../../src/metrics/degraded.ts';
import type { MetricsSource } from '../../src/metrics/metrics-source.ts';
import { createRegistry } from '../../src/metrics/registry.ts';
import {
  CLEAR_CAUSES,
  EVENT_TYPES,
  FILTER_REASONS,
  IGNORED_FIELD_REASONS,
  MALFORMED_REASONS,
  MEDIUM_LABELS,
  PUBLISH_FAILURE_REASONS,
  PUBLISHED_EVENT_TYPES,
  RelayMetrics,
} from '../../src/metrics/relay-metrics.ts';
import { STORAGE_TIERS } from '../../src/protocol/storage-tier.ts';
import { parseExposition, type Sample } from './exposition.ts';
import { relay, sourceOf } from './fake-source.ts';

const DYNAMO = 'dynamo_component_kv_publisher_';

async function scrape(source: MetricsSource): Promise<Sample[]> {
  return parseExposition(await createRegistry(source).metrics());
}

function sampleValue(
  samples: readonly Sample[],
  name: string,
  labels: Record<string, string>,
): number {
  const found = samples.filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  expect(found).toHaveLength(1);
  return (found[0] as Sample).value;
}

function labelValues(samples: readonly Sample[], name: string, label: string): Set<string> {
  const values = samples
    .filter((sample) => sample.name === name)
    .map((sample) => sample.labels[label] ?? '(absent)');
  return new Set(values);
}

test('a fresh relay exposes of Dynamo only the dropped events, at 0', async () => {
  const text = await createRegistry(sourceOf([relay(0)])).metrics();
  const dynamo = text.split('\n').filter((line) => line.includes('dynamo_'));
  expect(dynamo).toEqual([
    expect.stringMatching(`^# HELP ${DYNAMO}engines_dropped_events_total `),
    `# TYPE ${DYNAMO}engines_dropped_events_total counter`,
    `${DYNAMO}engines_dropped_events_total{dynamo_namespace="my_ns__",` +
      'dynamo_component="back_end",worker_id="ff00ab",dp_rank="0"} 0',
  ]);
});

test("Dynamo's vectors appear with their first increment, under its labels", async () => {
  const metrics = new RelayMetrics();
  metrics.received.stored = 3;
  metrics.accepted.stored = 2;
  metrics.filtered.stored.unknown_medium = 1;
  metrics.emptyStores = 4;
  metrics.droppedEvents = 5;
  const samples = await scrape(sourceOf([relay(7, { metrics })]));

  const constant = {
    dynamo_namespace: 'my_ns__',
    dynamo_component: 'back_end',
    worker_id: 'ff00ab',
    dp_rank: '7',
  };
  expect(samples.filter((sample) => sample.name.startsWith('dynamo_'))).toEqual([
    { name: `${DYNAMO}engines_dropped_events_total`, labels: constant, value: 5 },
    {
      name: `${DYNAMO}zmq_events_total`,
      labels: { ...constant, stage: 'received', event_type: 'stored' },
      value: 3,
    },
    {
      name: `${DYNAMO}zmq_events_total`,
      labels: { ...constant, stage: 'accepted', event_type: 'stored' },
      value: 2,
    },
    {
      name: `${DYNAMO}zmq_filtered_events_total`,
      labels: { ...constant, event_type: 'stored', reason: 'unknown_medium' },
      value: 1,
    },
    {
      name: `${DYNAMO}zmq_suspicious_events_total`,
      labels: { ...constant, event_type: 'stored', reason: 'empty_store_blocks' },
      value: 4,
    },
  ]);
});

test('the worker_id label follows a worker id found later, and the old series goes', async () => {
  const labels = { namespace: 'dynamo', component: 'backend', workerIdHex: '0' };
  const registry = createRegistry(sourceOf([relay(0)], { labels }));
  const name = `${DYNAMO}engines_dropped_events_total`;
  expect(labelValues(parseExposition(await registry.metrics()), name, 'worker_id')).toEqual(
    new Set(['0']),
  );
  labels.workerIdHex = 'deadbeef';
  expect(labelValues(parseExposition(await registry.metrics()), name, 'worker_id')).toEqual(
    new Set(['deadbeef']),
  );
});

test.each([
  ['malformed_messages_total', 'reason', MALFORMED_REASONS],
  ['engine_events_total', 'event_type', EVENT_TYPES],
  ['engine_events_total', 'medium', MEDIUM_LABELS],
  ['ignored_fields_total', 'reason', IGNORED_FIELD_REASONS],
  ['cleared_total', 'cause', CLEAR_CAUSES],
  ['live_blocks', 'storage_tier', STORAGE_TIERS],
  ['tracked_blocks', 'storage_tier', STORAGE_TIERS],
  ['published_events_total', 'event_type', PUBLISHED_EVENT_TYPES],
  ['published_blocks_total', 'event_type', PUBLISHED_EVENT_TYPES],
  ['publish_failures_total', 'reason', PUBLISH_FAILURE_REASONS],
  ['degraded', 'reason', DEGRADED_CODES],
])('kvrelay_%s has every %s at 0 from the start, for each rank', async (name, label, values) => {
  const samples = await scrape(sourceOf([relay(8), relay(9)]));
  expect(labelValues(samples, `kvrelay_${name}`, label)).toEqual(new Set(values));
  expect(labelValues(samples, `kvrelay_${name}`, 'dp_rank')).toEqual(new Set(['8', '9']));
  const family = samples.filter((sample) => sample.name === `kvrelay_${name}`);
  expect(family.every((sample) => sample.value === 0)).toBe(true);
});

test.each([
  'engine_connected',
  'engine_batches_total',
  'engine_bytes_total',
  'engine_missing_batches_total',
  'engine_lost_batches_total',
  'coalesced_events_total',
  'suppressed_removes_total',
  'published_messages_total',
  'published_bytes_total',
])('kvrelay_%s has one series a rank', async (name) => {
  const samples = await scrape(sourceOf([relay(0), relay(1)]));
  const family = samples.filter((sample) => sample.name === `kvrelay_${name}`);
  expect(family.map((sample) => sample.labels)).toEqual([{ dp_rank: '0' }, { dp_rank: '1' }]);
});

test('fields are read at the scrape, each under its own series', async () => {
  const metrics = new RelayMetrics();
  const registry = createRegistry(
    sourceOf([relay(0, { metrics, engineConnected: false, degraded: ['engine_gap'] })]),
  );
  await registry.metrics();
  metrics.engineBatches = 11;
  metrics.malformed.msgpack = 2;
  metrics.engineEvents.removed.GPU = 5;
  metrics.liveBlocks.host_pinned = 12_345_678_901;
  const samples = parseExposition(await registry.metrics());

  expect(sampleValue(samples, 'kvrelay_engine_batches_total', { dp_rank: '0' })).toBe(11);
  expect(sampleValue(samples, 'kvrelay_malformed_messages_total', { reason: 'msgpack' })).toBe(2);
  const removedOnGpu = { event_type: 'removed', medium: 'GPU' };
  expect(sampleValue(samples, 'kvrelay_engine_events_total', removedOnGpu)).toBe(5);
  expect(sampleValue(samples, 'kvrelay_live_blocks', { storage_tier: 'host_pinned' })).toBe(
    12_345_678_901,
  );
  expect(sampleValue(samples, 'kvrelay_engine_connected', { dp_rank: '0' })).toBe(0);
  expect(sampleValue(samples, 'kvrelay_degraded', { reason: 'engine_gap' })).toBe(1);
  expect(sampleValue(samples, 'kvrelay_degraded', { reason: 'filtered_only' })).toBe(0);
});

test('the plane, the event loop lag and the build are of the process, without a rank', async () => {
  const samples = await scrape(sourceOf([relay(0)]));
  expect(
    samples.filter((sample) => /^kvrelay_(plane|outbox|event_loop|build)/.test(sample.name)),
  ).toEqual([
    { name: 'kvrelay_plane_disconnects_total', labels: {}, value: 2 },
    { name: 'kvrelay_plane_reconnects_total', labels: {}, value: 1 },
    { name: 'kvrelay_plane_refused_subscribers_total', labels: {}, value: 3 },
    { name: 'kvrelay_plane_connected', labels: {}, value: 1 },
    { name: 'kvrelay_outbox_bytes', labels: {}, value: 4096 },
    { name: 'kvrelay_outbox_messages', labels: {}, value: 3 },
    { name: 'kvrelay_event_loop_lag_seconds', labels: {}, value: 0.0125 },
    { name: 'kvrelay_build_info', labels: { version: '1.2.3' }, value: 1 },
  ]);
});

test('the latency histogram has cumulative buckets that end at its count', async () => {
  const metrics = new RelayMetrics();
  for (const seconds of [0.00003, 0.00003, 0.002, 99]) metrics.relayLatencySeconds.observe(seconds);
  const text = await createRegistry(sourceOf([relay(0, { metrics })])).metrics();
  expect(text).toContain('# TYPE kvrelay_relay_latency_seconds histogram');

  const samples = parseExposition(text);
  const bucket = (le: string): number =>
    sampleValue(samples, 'kvrelay_relay_latency_seconds_bucket', { dp_rank: '0', le });
  expect([bucket('0.000025'), bucket('0.00005'), bucket('0.0025')]).toEqual([0, 2, 3]);
  expect([bucket('15'), bucket('+Inf')]).toEqual([3, 4]);
  expect(sampleValue(samples, 'kvrelay_relay_latency_seconds_count', { dp_rank: '0' })).toBe(4);
  expect(sampleValue(samples, 'kvrelay_relay_latency_seconds_sum', { dp_rank: '0' })).toBeCloseTo(
    99.00206,
  );
});

test('a value that is not finite is left out, and the scrape goes on', async () => {
  const metrics = new RelayMetrics();
  metrics.engineBytes = Number.NaN;
  metrics.publishedBytes = Number.POSITIVE_INFINITY;
  metrics.lostBatches = -1;
  metrics.received.stored = Number.NaN;
  metrics.relayLatencySeconds.sum = Number.POSITIVE_INFINITY;
  const source = sourceOf([relay(0, { metrics })], { eventLoopLagSeconds: () => Number.NaN });
  const names = new Set((await scrape(source)).map((sample) => sample.name));

  expect(names).not.toContain('kvrelay_engine_bytes_total');
  expect(names).not.toContain('kvrelay_published_bytes_total');
  expect(names).not.toContain('kvrelay_engine_lost_batches_total');
  expect(names).not.toContain('kvrelay_event_loop_lag_seconds');
  expect(names).not.toContain('kvrelay_relay_latency_seconds_sum');
  expect(names).not.toContain(`${DYNAMO}zmq_events_total`);
  expect(names).toContain('kvrelay_engine_batches_total');
});

test('every line parses without ranks, at once after the start, and none is NaN', async () => {
  const registry = createRegistry(sourceOf([]));
  // The loop delay histogram of Node is empty between two scrapes this close: its mean is NaN.
  for (const text of [await registry.metrics(), await registry.metrics()]) {
    const samples = parseExposition(text);
    expect(samples.every((sample) => Number.isFinite(sample.value))).toBe(true);
    expect(text).not.toMatch(/nan\b/i);
  }
});

test("Node's defaults are there", async () => {
  const names = new Set((await scrape(sourceOf([]))).map((sample) => sample.name));
  expect(names).toContain('process_resident_memory_bytes');
  expect(names).toContain('nodejs_heap_size_used_bytes');
});

test('no two series have the same name and labels', async () => {
  const metrics = new RelayMetrics();
  for (const type of EVENT_TYPES) {
    metrics.received[type] = metrics.accepted[type] = 1;
    for (const reason of FILTER_REASONS) metrics.filtered[type][reason] = 1;
  }
  const samples = await scrape(sourceOf([relay(0, { metrics }), relay(1, { metrics })]));
  const keys = samples.map(({ name, labels }) => `${name}${JSON.stringify(labels)}`);
  expect(new Set(keys).size).toBe(keys.length);
});

test.each(DEGRADED_CODES)('degraded code %s has a message and a remedy', (code) => {
  const { message, remedy } = describeDegraded(code);
  expect(message.length).toBeGreaterThan(10);
  expect(remedy.length).toBeGreaterThan(10);
  expect(describeDegraded(code, 'a, b')).toEqual({ code, message: `${message} (a, b)`, remedy });
});

test('others have the event loop while a long page is made', async () => {
  const registry = createRegistry(sourceOf(Array.from({ length: 256 }, (_, rank) => relay(rank))));
  let turns = 0;
  let isMade = false;
  const count = (): void => {
    turns++;
    if (!isMade) setImmediate(count);
  };
  setImmediate(count);
  await registry.metrics();
  isMade = true;
  expect(turns).toBeGreaterThan(5);
});
