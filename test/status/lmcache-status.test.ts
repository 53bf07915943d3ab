/** An LMCache beside a real worker: `/api/status` key by key, `/metrics`, and what its loss does to both. */
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createLogger } from '../../src/log.ts';
import { DEGRADED_CODES } from '../../src/metrics/degraded.ts';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { createWorker } from '../../src/worker.ts';
import { bridgeFrames, requestStart } from '../support/bridge-message.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { parsePage } from '../support/prometheus-page.ts';
import { configOf } from '../support/worker-config.ts';
import { RunningWorker } from './running-worker.ts';

const count = z.int().nonnegative();
const text = z.string().min(1);
const share = z.number().min(0).max(1).nullable();
const notice = z.strictObject({ code: z.enum(DEGRADED_CODES), message: text, remedy: text });
const shares = z.array(
  z.strictObject({ name: z.string(), requested_tokens: count, hit_tokens: count }),
);

const lmcacheShape = z.strictObject({
  endpoint: text,
  connected: z.boolean(),
  replay: z.enum(['none', 'idle', 'running']),
  version: text.nullable(),
  last_seq: text.nullable(),
  last_message_age_ms: count.nullable(),
  degraded: z.array(notice),
  events: count,
  losses: z.strictObject({
    lost_messages: count,
    bridge_dropped: count,
    bus_dropped: count,
    malformed: count,
    restarts: count,
  }),
  requests: z.strictObject({
    in_flight: count,
    open_transfers: count,
    completed: count,
    timed_out: count,
  }),
  hit_rate: z.strictObject({
    minute: share,
    ten_minutes: share,
    hour: share,
    total: share,
    by_minute: z.array(share).length(60),
  }),
  adapters: z.array(
    z.strictObject({
      l2_name: text,
      stored_bytes: count,
      loaded_bytes: count,
      store_tasks: count,
      load_tasks: count,
      failed_stores: count,
      store_gb_per_s: z.number().positive().nullable(),
      load_gb_per_s: z.number().positive().nullable(),
    }),
  ),
  l1: z.strictObject({ read: count, written: count, evicted: count }),
  l2: z.strictObject({ evicted: count }),
  failures: z.record(text, count),
  models: shares,
  salts: shares,
  contracts: z.strictObject({
    violations: z.array(
      z.strictObject({ event: text, field: text, kind: text, count: count.positive() }),
    ),
    additive_keys: count,
    unknown_events: count,
    unknown_types: z.array(text),
  }),
});

interface Trial {
  readonly running: RunningWorker;
  readonly bridge: EngineStub;
}

async function start(): Promise<Trial> {
  const bridge = await EngineStub.start();
  onTestFinished(() => bridge.close());
  const running = await RunningWorker.start(1, '--lmcache-bridge', bridge.endpoint);
  onTestFinished(() => running.stop());
  await bridge.subscribed();
  expect(await reaches(running, ({ lmcache }) => lmcache?.connected === true)).toBe(true);
  return { running, bridge };
}

async function reaches(
  running: RunningWorker,
  condition: (status: StatusSnapshot) => boolean,
): Promise<boolean> {
  const untilMs = performance.now() + 10_000;
  while (performance.now() < untilMs) {
    if (condition(await running.status())) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

const pageOf = async (running: RunningWorker) =>
  parsePage(await (await fetch(`${running.url}/metrics`)).text());

test('a worker is ready once the bridge has been connected, with an engine or none', async () => {
  const bridge = await EngineStub.start();
  const { endpoint } = bridge;
  bridge.close();
  const argv = ['--engine', 'none', '--lmcache-bridge', endpoint, '--http', 'off'];
  const logger = createLogger({ level: 'silent', format: 'json' });
  const worker = createWorker(configOf(...argv), { logger });
  onTestFinished(() => worker.stop());
  await worker.start();
  expect(worker.ready().waitingFor).toEqual([`the bridge of LMCache at ${endpoint}`]);
  const late = await EngineStub.start(endpoint);
  onTestFinished(() => late.close());
  expect(await eventually(() => worker.ready().ready)).toBe(true);
  expect(worker.status()).toMatchObject({ ranks: [], sources: [{ source: 'lmcache' }] });
});

test('what is shown of it has the keys of the interface, before and after events', async () => {
  const { running, bridge } = await start();
  const before = (await running.status()).lmcache;
  expect(lmcacheShape.parse(before)).toEqual(before);
  const store = { adapter_index: 0, task_id: 1, l2_name: 'fs', bytes_transferred: 8 };
  const done = { ...store, succeeded_count: 0, failed_count: 2 };
  const lookup = { requested_tokens: 64, hit_tokens: 16, model_name: 'm', cache_salt: '' };
  await bridge.send(
    bridgeFrames(0, [
      requestStart('r1'),
      ['l2.store.submitted', 998.5, '', { ...store, total_bytes: 3e9 }],
      ['l2.store.completed', 1000, '', { ...done, bytes_transferred: 3e9 }],
      ['l2.store.submitted', 1000, '', { ...store, task_id: 2, total_bytes: 1e9 }],
      ['l2.store.completed', 1001, '', { ...done, task_id: 2, bytes_transferred: 1e9 }],
      ['mp.lookup_prefetch.end', 1000, 'r1', lookup],
      ['timeout.raised', 1000, '', { message: 'm', exception_type: 'Late', stacktrace: 's' }],
      ['other.type', 1000, '', {}],
    ]),
  );
  expect(await reaches(running, ({ lmcache }) => lmcache?.events === 8)).toBe(true);
  const { lmcache, sources } = await running.status();
  expect(lmcacheShape.parse(lmcache)).toEqual(lmcache);
  expect(lmcache).toMatchObject({
    failures: { 'timeout Late': 1, l2_store: 4 },
    adapters: [{ l2_name: 'fs', stored_bytes: 4e9, failed_stores: 4, store_gb_per_s: 1.5 }],
    contracts: { unknown_events: 1 },
  });
  expect(sources).toMatchObject([{ source: 'lmcache', connected: true, degraded: [] }]);
});

test('its metrics are on the page, and its loss degrades, but does not end readiness', async () => {
  const { running, bridge } = await start();
  await bridge.send(bridgeFrames(0, [['cb.lookup.start', 1000, 'r1', { num_tokens: 5 }]]));
  expect(await reaches(running, ({ lmcache }) => lmcache?.events === 1)).toBe(true);
  const lookups = 'lmcache_blend_lookup_requests_total{otel_scope_name="lmcache.blend"}';
  const degraded = 'kvrelay_degraded{dp_rank="0",reason="lmcache_disconnected"}';
  const before = await pageOf(running);
  expect([before.series.get(lookups), before.series.get(degraded)]).toEqual([1, 0]);
  bridge.close();
  expect(await reaches(running, ({ state }) => state === 'degraded')).toBe(true);
  expect(await eventually(() => running.worker.ready().ready)).toBe(true);
  const after = await pageOf(running);
  expect([after.series.get(lookups), after.series.get(degraded)]).toEqual([1, 1]);
  expect((await running.status()).sources).toMatchObject([
    { source: 'lmcache', connected: false, degraded: [{ code: 'lmcache_disconnected' }] },
  ]);
});
