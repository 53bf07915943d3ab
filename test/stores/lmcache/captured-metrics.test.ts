/** What LMCache's own subscribers made of a seeded stream of events, and what comes of the same messages here. */
import { gunzipSync } from 'node:zlib';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { readBusBatch } from '../../../src/engines/lmcache/bus-batch.ts';
import { ContractChecker } from '../../../src/engines/lmcache/contract-checker.ts';
import { registerLmcacheMetrics } from '../../../src/metrics/lmcache-exposition.ts';
import { LMCACHE_COUNTERS } from '../../../src/metrics/lmcache-families.ts';
import { LMCACHE_HISTOGRAMS } from '../../../src/metrics/lmcache-histograms.ts';
import { BusMetrics } from '../../../src/stores/lmcache/bus-metrics.ts';
import { pageOf, parsePage } from '../../support/prometheus-page.ts';
import { readVectorFile } from '../../support/vectors.ts';

interface Capture {
  readonly version: string;
  readonly events: number;
  readonly page: string;
  /** Base64, as the bridge sent them. */
  readonly payloads: readonly string[];
}

function captureOf(version: string): Capture {
  const bytes = gunzipSync(readVectorFile(`lmcache/metrics-${version}.json.gz`));
  return JSON.parse(bytes.toString('utf8')) as Capture;
}

async function replayed({ payloads }: Capture) {
  const checker = new ContractChecker();
  const metrics = new BusMetrics({
    sampleRate: 1,
    maxTracked: 100_000,
    maxPending: 65_536,
    timeoutS: 3600,
    maxLabelValues: 200,
  });
  const bus = { queueDepth: 0, drainLagSeconds: 0, busDropped: 0, exceptions: {} };
  let events = 0;
  for (const payload of payloads) {
    const batch = readBusBatch(Buffer.from(payload, 'base64'));
    if (typeof batch === 'string') throw new Error(batch);
    metrics.noteVersion(batch.status.version);
    for (const raw of batch.events) {
      const event = checker.check(raw, batch.status.version);
      if (event !== null) metrics.push(event);
      events++;
    }
  }
  const registry = new Registry();
  registerLmcacheMetrics(registry, () => ({ series: metrics.series, bus }));
  return { checker, metrics, events, page: parsePage(await registry.metrics()) };
}

test('every series of LMCache 0.5.6 comes out with the same value, and none beside them', async () => {
  const capture = captureOf('0.5.6');
  const { page, events, checker, metrics } = await replayed(capture);
  expect(events).toBe(capture.events);
  const expected = pageOf(parsePage(capture.page), 'lmcache_');
  expect(expected.series.size).toBeGreaterThan(700);
  expect(page.series).toEqual(expected.series);
  for (const [name, type] of expected.types) expect(page.types.get(name), `${name}`).toBe(type);
  expect(checker.violations).toEqual([]);
  expect(metrics.series.overflows.size).toBe(0);
});

test('every series of LMCache 0.5.1 comes out with the same value', async () => {
  const capture = captureOf('0.5.1');
  const { page, events, checker } = await replayed(capture);
  expect(events).toBe(capture.events);
  const expected = pageOf(parsePage(capture.page), 'lmcache_');
  expect(expected.series.size).toBeGreaterThan(400);
  const common = new Map([...page.series].filter(([name]) => expected.series.has(name)));
  expect(common).toEqual(expected.series);
  expect(checker.violations).toEqual([]);
});

test('every metric moves in one of the captures', () => {
  const pages = ['0.5.6', '0.5.1'].map((version) => parsePage(captureOf(version).page));
  const families = [...Object.values(LMCACHE_COUNTERS), ...Object.values(LMCACHE_HISTOGRAMS)];
  const still = families.filter(([name]) => !pages.some(({ types }) => types.has(name)));
  expect(still.map(([name]) => name)).toEqual([]);
});
