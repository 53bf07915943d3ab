/** `/api/status`, key by key and type by type, of a real worker while events run through it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { DEGRADED_CODES } from '../../src/metrics/degraded.ts';
import { FILTER_REASONS } from '../../src/metrics/relay-metrics.ts';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { eventually } from '../support/plane-collector.ts';
import { RunningWorker } from './running-worker.ts';

const count = z.int().nonnegative();
/** Exact in JSON only as text. */
const u64 = z
  .string()
  .regex(/^(0|[1-9]\d{0,19})$/)
  .refine((text) => BigInt(text) < 2n ** 64n);
const text = z.string().min(1);

const noticeShape = z.strictObject({ code: z.enum(DEGRADED_CODES), message: text, remedy: text });

const engineShape = z.strictObject({
  endpoint: text,
  connected: z.boolean(),
  last_seq: u64.nullable(),
  emitted_seq: u64.nullable(),
  last_batch_age_ms: z.number().nonnegative().nullable(),
  replay: z.enum(['none', 'idle', 'running']),
});

const countersShape = z.object({
  received: count,
  accepted: count,
  filtered: count,
  coalesced: count,
  published_events: count,
  published_blocks: count,
  suppressed_removes: count,
  missing_batches: count,
  lost_batches: count,
  heartbeats: count,
  duplicate_batches: count,
  engine_restarts: count,
  malformed: count,
});

const rankShape = z.object({
  dp_rank: count,
  worker_id: u64.nullable(),
  publisher_id: u64,
  plane_endpoint: text.nullable(),
  state: z.enum(['connecting', 'idle', 'filtered_only', 'flowing']),
  degraded: z.array(noticeShape),
  engine: engineShape,
  counters: countersShape.catchall(count),
  filtered_by_reason: z.partialRecord(z.enum(FILTER_REASONS), count),
  latency_ms: z.strictObject({
    p50: z.number().positive().nullable(),
    p99: z.number().positive().nullable(),
  }),
  queues: z.record(text, count),
  blocks: z.strictObject({ device: count, host_pinned: count, disk: count, external: count }),
  last_event_id: u64.nullable(),
  block_size: z.strictObject({ configured: count.nullable(), seen: z.array(count) }),
});

const sourceShape = z.strictObject({
  source: text,
  endpoint: text,
  connected: z.boolean(),
  suspect: z.boolean(),
  degraded: z.array(noticeShape),
  objects: count,
  last_seq: u64.nullable(),
  last_message_age_ms: z.number().nonnegative().nullable(),
  held_messages: count,
  counters: z.record(text, count),
  reconciliation: z
    .strictObject({
      endpoint: text,
      state: z.enum(['idle', 'running', 'waiting']),
      last_ms: count.nullable(),
      age_ms: count.nullable(),
    })
    .nullable(),
  placement: z.looseObject({ pattern: text, storage_tier: text, placed_blocks: count }).nullable(),
});

const objectsShape = z.strictObject({
  publisher_id: u64,
  plane_endpoint: text.nullable(),
  last_event_id: u64.nullable(),
  objects: count,
  bytes: count,
  buffered_events: count,
});

const statusShape = z.object({
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  started_at: z.iso.datetime({ precision: 3 }),
  uptime_s: z.number().nonnegative(),
  compat: z.enum(['strict', 'safe']),
  state: z.enum(['starting', 'ready', 'degraded', 'stopping']),
  settings: z.record(
    text,
    z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string())]),
  ),
  plane: z.strictObject({
    kind: z.enum(['zmq', 'nats', 'none']),
    connected: z.boolean(),
    endpoint: text.nullable(),
    outbox_bytes: count,
    outbox_messages: count,
  }),
  recovery: z
    .strictObject({
      request_plane: z.enum(['tcp', 'nats']),
      endpoint: text.nullable(),
      clients: count,
      answers_in_flight: count,
    })
    .nullable(),
  ranks: z.array(rankShape).min(1),
  worker_load: z
    .strictObject({
      engine_metrics: text,
      publisher_id: u64,
      plane_endpoint: text.nullable(),
      ranks: z.array(z.strictObject({ dp_rank: count, kv_used_blocks: count.nullable() })),
    })
    .nullable(),
  lmcache: z.null(),
  lmcache_coordinator: z.null(),
  sources: z.array(sourceShape),
  objects: objectsShape.nullable(),
});

let running: RunningWorker;

beforeAll(async () => {
  running = await RunningWorker.start(3);
});

afterAll(async () => {
  await running.stop();
});

/** Of the stream, as its first event has it. */
async function streamed(url: string): Promise<unknown> {
  const response = await fetch(`${url}/api/stream`);
  const decoder = new TextDecoder();
  let received = '';
  for await (const chunk of response.body ?? []) {
    received += decoder.decode(chunk, { stream: true });
    const event = /^data: (.*)\n\n/m.exec(received)?.[1];
    // Leaving the loop ends the stream.
    if (event !== undefined) return JSON.parse(event);
  }
  throw new Error('the stream ended without an event');
}

test('before the first event what is not known yet is null, not 0 and not missing', async () => {
  const status = await running.status();
  expect(statusShape.parse(status)).toEqual(status);
  expect(status.ranks[0]).toMatchObject({
    engine: { last_seq: null, emitted_seq: null, last_batch_age_ms: null },
    latency_ms: { p50: null, p99: null },
    last_event_id: null,
    state: 'idle',
  });
});

test('while events run, every key of the interface is there, of its type', async () => {
  running.play(10);
  await eventually(() => {
    const { ranks } = running.worker.status();
    return ranks.every(({ counters }) => counters.published_events > 20);
  }, 10_000);
  await running.send(2, [], 3);
  running.killEngine(0);
  const isAsExpected = (): boolean => {
    const { ranks } = running.worker.status();
    return (ranks[0]?.degraded.length ?? 0) > 0 && (ranks[2]?.counters.lost_batches ?? 0) > 0;
  };
  expect(await eventually(isAsExpected, 10_000)).toBe(true);

  for (const status of [await running.status(), await streamed(running.url)]) {
    expect(statusShape.parse(status)).toEqual(status);
    const { state, ranks } = status as StatusSnapshot;
    const [first, second, third] = ranks;
    expect(state).toBe('degraded');
    expect(first?.degraded.map(({ code }) => code)).toEqual(['engine_disconnected']);
    expect(second?.filtered_by_reason.unknown_medium).toBeGreaterThan(0);
    expect(third).toMatchObject({
      state: 'flowing',
      degraded: [{ code: 'engine_gap' }],
      counters: { lost_batches: 3, malformed: 0 },
    });
    expect(third?.blocks.device).toBeGreaterThan(0);
    expect(third?.blocks.host_pinned).toBeGreaterThan(0);
    expect(third?.latency_ms.p99).toBeGreaterThan(0);
  }
});

test('the counters of a rank agree with each other and with its event ids', async () => {
  running.pause();
  const [, second] = (await running.status()).ranks;
  const { counters, filtered_by_reason, last_event_id, engine } = second ?? {};
  if (counters === undefined || engine === undefined) throw new Error('no second rank');
  expect(counters.received).toBe(counters.accepted + counters.filtered);
  const reasons = Object.values(filtered_by_reason ?? {});
  expect(reasons.reduce((sum, each) => sum + each, 0)).toBe(counters.filtered);
  expect(last_event_id).toBe(String(counters.published_events));
  expect(engine.emitted_seq).toBe(engine.last_seq);
});

test('what the stream of a running worker exposes at /metrics agrees with /api/status', async () => {
  const { ranks } = await running.status();
  const metrics = await (await fetch(`${running.url}/metrics`)).text();
  for (const { dp_rank, counters, blocks } of ranks) {
    const value = (name: string, labels = ''): number => {
      const line = new RegExp(`^${name}\\{dp_rank="${dp_rank}"${labels}\\} (\\d+)$`, 'm');
      return Number(line.exec(metrics)?.[1]);
    };
    expect(value('kvrelay_engine_lost_batches_total')).toBe(counters.lost_batches);
    expect(value('kvrelay_coalesced_events_total')).toBe(counters.coalesced);
    expect(value('kvrelay_suppressed_removes_total')).toBe(counters.suppressed_removes);
    expect(value('kvrelay_live_blocks', ',storage_tier="device"')).toBe(blocks.device);
  }
});
