/** A worker beside LMCache's MP servers alone: the object stream, the listing, status and metrics. */
import { unpack } from 'msgpackr';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createLogger } from '../../src/log.ts';
import type { ObjectEvent } from '../../src/protocol/object-event.ts';
import { createWorker } from '../../src/worker.ts';
import { parseExposition } from '../metrics/exposition.ts';
import { findPromtool, PROMTOOL_TIMEOUT_MS, promtoolComplaints } from '../metrics/promtool.ts';
import { bodyOf, keyOfChunk, wireBatch, wireEntry } from '../support/cache-batches.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';

async function start() {
  const listen = ['--lmcache-coordinator-listen', '127.0.0.1:0'];
  const served = ['--plane-endpoint', 'tcp://127.0.0.1:0', '--http', '127.0.0.1:0'];
  const config = configOf('--engine', 'none', ...listen, ...served);
  const worker = createWorker(config, {
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const collector = new ZmqCollector(worker.status().objects?.plane_endpoint ?? '');
  onTestFinished(() => collector.close());
  await collector.subscribed();
  const endpoint = worker.status().sources[0]?.endpoint ?? '';
  return {
    worker,
    collector,
    url: worker.httpUrl ?? '',
    post: async (...batches: readonly unknown[]): Promise<unknown> => {
      const sent = { method: 'POST', body: bodyOf(...batches) };
      return (await fetch(`${endpoint}/events`, sent)).json();
    },
  };
}

const POOL = { tier: 'l2', backend: 's3', shared: true };
const CONFIG = { event_type: 'config', capacity_bytes: 400, capacity_revision: 1 };
const BATCHES = [
  wireBatch(1, CONFIG),
  wireBatch(2, { entries: [wireEntry('a'), wireEntry('b', { cache_salt: 't' })] }),
  wireBatch(3, { ...POOL, entries: [wireEntry('a', { model_name: 'm2', size_bytes: 70 })] }),
];

const count = z.int().nonnegative();
const text = z.string().min(1);

const statusShape = z.strictObject({
  endpoint: text,
  forward: z.null(),
  instance_count: z.literal(1),
  instances: z.array(
    z.strictObject({
      instance_id: z.literal('mp-1'),
      incarnation: z.literal(1000),
      last_seq: z.literal(3),
      whole: z.literal(true),
      left: z.literal(false),
      last_heard_age_ms: count,
      lost_batches: z.literal(0),
      restarts: z.literal(0),
    }),
  ),
  compartment_count: z.literal(2),
  compartments: z.array(
    z.strictObject({
      instance_id: text.nullable(),
      tier: z.enum(['l1', 'l2']),
      backend: text,
      chunks: count,
      keys: count,
      bytes: count,
      capacity_bytes: count.nullable(),
    }),
  ),
  keys: z.literal(3),
  untracked_keys: z.literal(0),
  batches: z.record(text, count),
  refused: z.record(text, count),
});

test('consumers of the object stream see what the servers hold', async () => {
  const { collector, url, post, worker } = await start();
  expect(await post(...BATCHES)).toEqual({ applied: 3, duplicates: 0, stale: 0 });
  await post(wireBatch(5));
  const events = () =>
    collector.published.flatMap(
      ({ payload }) => (unpack(payload) as { events: ObjectEvent[] }).events,
    );
  expect(await eventually(() => events().length === 6)).toBe(true);
  expect(events().map((one) => [one.type, one.backend_id, one.tenant_id, one.object_key])).toEqual([
    ['stored', 'server:mp-1', 'm1', keyOfChunk('a')],
    ['stored', 'server:mp-1', 'm1@t', keyOfChunk('b')],
    ['stored', 'shared:l2/s3', 'm2', keyOfChunk('a')],
    ['cleared', 'server:mp-1', 'm1', undefined],
    ['cleared', 'server:mp-1', 'm1@t', undefined],
    ['cleared', 'shared:l2/s3', 'm2', undefined],
  ]);
  expect(events()[2]).toMatchObject({ source: 'lmcache', media: ['l2/s3'], model_name: 'm2' });
  expect(
    events()
      .slice(3)
      .every(({ cause }) => cause === 'invalidated'),
  ).toBe(true);
  const [source] = worker.status().sources;
  expect(source).toMatchObject({
    source: 'lmcache_coordinator',
    connected: true,
    objects: 0,
    counters: { messages: 2, applied: 3, lost_messages: 1, invalidated_objects: 3 },
  });
  expect(source?.degraded.map(({ message }) => message).join()).toContain('were missed');
  const listing = await (await fetch(`${url}/api/objects?source=lmcache`)).text();
  expect(listing).toBe('');
});

test('status and listing show them, by server, tier and backend', async () => {
  const { url, post, worker } = await start();
  const waiting = worker.status().sources[0]?.degraded.map(({ remedy }) => remedy);
  expect(waiting?.join()).toContain('--coordinator-url http://127.0.0.1:');
  expect(worker.ready().ready).toBe(true);
  await post(...BATCHES);
  expect(worker.status().state).toBe('ready');
  const status = (await (await fetch(`${url}/api/status`)).json()) as Record<string, unknown>;
  const checked = statusShape.parse(status.lmcache_coordinator);
  const shown = checked.compartments.map(({ instance_id, tier, backend, ...held }) => [
    [instance_id, tier, backend].join(' '),
    held,
  ]);
  expect(shown).toEqual([
    ['mp-1 l1 dram', { chunks: 2, keys: 2, bytes: 200, capacity_bytes: 400 }],
    [' l2 s3', { chunks: 1, keys: 1, bytes: 70, capacity_bytes: null }],
  ]);
  const listing = await (await fetch(`${url}/api/objects?source=lmcache&tenant=m1@t`)).text();
  expect(JSON.parse(listing)).toEqual({
    source: 'lmcache',
    backend_id: 'server:mp-1',
    tenant_id: 'm1@t',
    object_key: keyOfChunk('b'),
    media: ['l1/dram'],
    model_name: 'm1',
  });
});

test(
  'metrics have bytes and capacity, and promtool objects to none of them',
  async ({ skip }) => {
    const { url, post } = await start();
    await post(...BATCHES);
    const page = await (await fetch(`${url}/metrics`)).text();
    const at = { instance_id: 'mp-1', tier: 'l1', backend: 'dram' };
    const samples = parseExposition(page);
    const value = (name: string, labels: Record<string, string>) =>
      samples.find(
        (one) => one.name === name && JSON.stringify(one.labels) === JSON.stringify(labels),
      )?.value;
    expect(value('kvrelay_lmcache_held_bytes', at)).toBe(200);
    expect(value('kvrelay_lmcache_capacity_bytes', at)).toBe(400);
    const pool = { instance_id: '', tier: 'l2', backend: 's3' };
    expect(value('kvrelay_lmcache_held_bytes', pool)).toBe(70);
    expect(value('kvrelay_lmcache_capacity_bytes', pool)).toBeUndefined();
    const source = { source: 'lmcache_coordinator' };
    expect(value('kvrelay_source_objects', source)).toBe(3);
    const applied = { ...source, event_type: 'stored', stage: 'applied' };
    expect(value('kvrelay_source_events_total', applied)).toBe(3);
    expect(value('kvrelay_lmcache_coordinator_batches_total', { outcome: 'applied' })).toBe(3);
    const { path, reason } = findPromtool();
    if (path === null) {
      if (process.env.KVRELAY_REQUIRE_ALL === '1') throw new Error(`no promtool: ${reason}`);
      skip(`no promtool: ${reason}`);
      return;
    }
    expect(promtoolComplaints(path, page)).toBe('');
  },
  PROMTOOL_TIMEOUT_MS,
);
