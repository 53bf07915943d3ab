/** The bus of LMCache over real sockets: order, losses, replay and restarts as an engine's. */
import { expect, onTestFinished, test } from 'vitest';
import { createLmcacheSource, type LmcacheSource } from '../src/lmcache-source.ts';
import {
  lmcacheNotices,
  lmcacheReading,
  lmcacheStatus,
  lmcacheStoreReading,
} from '../src/lmcache-status.ts';
import type { ChunkPlacements } from '../src/stores/placement/chunk-placements.ts';
import { ChunkTrial, hashOf } from './stores/placement/chunk-trial.ts';
import { bridgeFrames, requestStart } from './support/bridge-message.ts';
import { EngineStub } from './support/engine-stub.ts';
import { freePorts } from './support/free-ports.ts';
import { eventually } from './support/plane-collector.ts';
import { ReplayStub } from './support/replay-stub.ts';
import { configOf } from './support/worker-config.ts';

const QUIET = { info: () => undefined } as never;

interface Trial {
  readonly bridge: EngineStub;
  readonly source: LmcacheSource;
  readonly warnings: string[];
}

async function trialOf(...flags: string[]): Promise<Trial> {
  return trialWith(null, ...flags);
}

async function trialWith(chunks: ChunkPlacements | null, ...flags: string[]): Promise<Trial> {
  const bridge = await EngineStub.start();
  onTestFinished(() => bridge.close());
  const warnings: string[] = [];
  const config = configOf('--block-size', '16', '--lmcache-bridge', bridge.endpoint, ...flags);
  const source = createLmcacheSource({
    config,
    logger: QUIET,
    warner: { warn: (key) => void warnings.push(key) },
    chunks,
  });
  if (source === null) throw new Error('no source');
  onTestFinished(() => source.stop(0));
  await source.start();
  await bridge.subscribed();
  expect(await eventually(() => source.listener.isConnected)).toBe(true);
  return { bridge, source, warnings };
}

const eventsOf = (source: LmcacheSource): number =>
  source.view.checker.events.get('MP_REQUEST_START') ?? 0;

test('without a bridge there is no source', () => {
  const deps = {
    config: configOf('--block-size', '16'),
    logger: QUIET,
    warner: { warn: () => undefined },
    chunks: null,
  };
  expect(createLmcacheSource(deps)).toBeNull();
});

test('events and the state of the bus arrive, and are shown', async () => {
  const { bridge, source } = await trialOf();
  const lookup = { requested_tokens: 64, hit_tokens: 48, model_name: 'm', cache_salt: 'a' };
  const found = { found_count: 3, l1_hit_tokens: 32, l2_hit_tokens: 16, l1_hit_keys: 2 };
  await bridge.send(
    bridgeFrames(
      0,
      [
        requestStart('r1'),
        ['mp.lookup_prefetch.end', 1000, 'r1', { ...lookup, ...found, early_exit_reason: '' }],
        ['new.type', 1000, '', {}],
      ],
      { queue_depth: 4, drain_lag_s: 0.5 },
    ),
  );
  expect(await eventually(() => eventsOf(source) === 1)).toBe(true);
  expect(lmcacheStatus(source)).toMatchObject({
    connected: true,
    version: '0.5.6',
    last_seq: '0',
    degraded: [],
    events: 3,
    requests: { in_flight: 1, open_transfers: 0, completed: 0, timed_out: 0 },
    hit_rate: { minute: 0.75, ten_minutes: 0.75, hour: 0.75, total: 0.75 },
    models: [{ name: 'm', requested_tokens: 64, hit_tokens: 48 }],
    salts: [{ name: 'a', requested_tokens: 64, hit_tokens: 48 }],
    contracts: {
      violations: [
        { event: 'MP_LOOKUP_PREFETCH_END', field: 'l2_hit_keys', kind: 'missing', count: 1 },
      ],
      unknown_events: 1,
      unknown_types: ['new.type'],
    },
  });
  expect(lmcacheReading(source)).toMatchObject({
    bus: { queueDepth: 4, drainLagSeconds: 0.5 },
  });
  const { metrics, received } = lmcacheStoreReading(source);
  expect(metrics).toMatchObject({ messages: 1, droppedEvents: { unknown_type: 1 } });
  expect([...(received ?? [])]).toEqual([
    ['MP_REQUEST_START', 1],
    ['MP_LOOKUP_PREFETCH_END', 1],
  ]);
});

test('tokens and salts of chunks reach those who place them, from whatever version', async () => {
  const trial = new ChunkTrial();
  const { bridge } = await trialWith(trial.placements);
  const [one, two] = [Buffer.from(hashOf([1, 2])), Buffer.from(hashOf([1, 2, 3, 4]))];
  const chunks = {
    chunk_hashes: [one, two],
    token_chunks: [
      [1, 2],
      [3, 4],
    ],
  };
  const feed = trial.placements.feed();
  const untold = { parentHash: undefined, tokenIds: [], tokenOffset: -1 };
  for (const hash of [one, two]) {
    feed.stored({ ...untold, hash, model: 'm', salt: '', tier: 'l2' });
  }
  expect(trial.placements.waiting).toEqual({ tokens: 2, parent: 0 });
  await bridge.send(bridgeFrames(0, [['mp.tokens', 1000, 'r', chunks]]));
  // Before 0.5.4 nothing tells where they stand.
  expect(await eventually(() => trial.placements.waiting.parent === 2)).toBe(true);
  const placed = { ...chunks, token_offsets: [0, 2], parent_hashes: [null, one] };
  await bridge.send(bridgeFrames(1, [['mp.tokens', 1000, 'r', placed]]));
  expect(await eventually(() => trial.placements.waiting.parent === 0)).toBe(true);
  trial.turn();
  expect(trial.match([1, 2, 3, 4])).toMatchObject({ disk: 2 });
  const blind = trial.placements.feed(true);
  blind.stored({ ...untold, hash: one, model: 'm', salt: '', tier: 'l1' });
  const key = { chunk_hash: one, model_name: 'm', kv_rank: 0, object_group_id: 0 };
  const keys = { keys: [{ ...key, cache_salt: 'a' }], meta: [], l1_tag: 'l1' };
  await bridge.send(bridgeFrames(2, [['l1.write.finished', 1000, '', keys]]));
  expect(await eventually(() => trial.placements.refused.salt === 1)).toBe(true);
  trial.turn();
  expect(trial.match([1, 2])).toMatchObject({ host_pinned: 0, disk: 1 });
  await bridge.send(bridgeFrames(3, [['l1.keys.evicted', 1000, '', keys]]));
  const isPlaced = (): boolean => {
    trial.turn();
    return trial.match([1, 2]).host_pinned === 1;
  };
  expect(await eventually(isPlaced)).toBe(true);
});

test('a message that was missed is replayed, in its place', async () => {
  const port = await freePorts(1);
  const replays = await ReplayStub.start(`tcp://127.0.0.1:${port}`);
  const messages = [0, 1, 2].map((number) => bridgeFrames(number, [requestStart(`r${number}`)]));
  replays.keep(...messages);
  const { bridge, source } = await trialOf('--lmcache-replay', `tcp://127.0.0.1:${port}`);
  await bridge.send(messages[0] ?? []);
  await bridge.send(messages[2] ?? []);
  expect(await eventually(() => eventsOf(source) === 3)).toBe(true);
  expect(source.link.lostBatches).toBe(0);
  expect(source.hasRecentLoss).toBe(false);
});

test('messages that stay missing are counted, and events told lost', async () => {
  const { bridge, source, warnings } = await trialOf();
  await bridge.send(bridgeFrames(0, [requestStart('r0')]));
  await bridge.send(bridgeFrames(3, [requestStart('r3')]));
  expect(await eventually(() => eventsOf(source) === 2)).toBe(true);
  expect(lmcacheStatus(source).losses.lost_messages).toBe(2);
  expect(lmcacheNotices(source).map(({ code }) => code)).toEqual(['lmcache_events_lost']);
  expect(warnings).toEqual(['lmcache_gap']);
});

test.each([['dropped'], ['bus_dropped'], ['unencodable']])(
  'events %s at the other end are told lost',
  async (key) => {
    const { bridge, source, warnings } = await trialOf();
    await bridge.send(bridgeFrames(0, [requestStart('r0')], { [key]: 5 }));
    await bridge.send(bridgeFrames(1, [requestStart('r1')], { [key]: 5 }));
    expect(await eventually(() => eventsOf(source) === 2)).toBe(true);
    expect(source.hasRecentLoss).toBe(true);
    expect(warnings).toEqual(['lmcache_dropped']);
  },
);

test('a message that is none costs itself', async () => {
  const { bridge, source, warnings } = await trialOf();
  const [topic, number] = bridgeFrames(0, []);
  await bridge.send([topic as Buffer, number as Buffer, Buffer.from([0xdb])]);
  await bridge.send(bridgeFrames(1, [requestStart('r1')]));
  expect(await eventually(() => eventsOf(source) === 1)).toBe(true);
  expect(lmcacheStatus(source).losses.malformed).toBe(1);
  expect(lmcacheStoreReading(source).metrics.malformed.msgpack).toBe(1);
  expect(warnings).toEqual(['lmcache_malformed']);
});

test('a restart gives up what was under way, and sums go on', async () => {
  const { bridge, source, warnings } = await trialOf();
  const write = (at: number): readonly [string, number, string, object] => [
    'l1.eviction.loop_tick',
    at,
    '',
    { usage: 0.5, watermark: 0.9, triggered: false },
  ];
  await bridge.send(bridgeFrames(0, [requestStart('r0'), write(1000) as never], { dropped: 2 }));
  await bridge.send(bridgeFrames(1, [requestStart('r1')], { dropped: 2 }));
  await bridge.send(bridgeFrames(0, [requestStart('r2'), write(1001) as never], { sentAt: 2000 }));
  expect(await eventually(() => eventsOf(source) === 3)).toBe(true);
  expect(source.link.engineRestarts).toBe(1);
  expect(source.view.requests.inFlight).toBe(1);
  expect(lmcacheReading(source).requests).toMatchObject({ abandoned: 2 });
  expect(source.view.metrics.series.total('l1_eviction_loop_ticks')).toBe(2);
  expect(warnings).toEqual(['lmcache_dropped', 'lmcache_restart']);
});

test('reads that fail although a lookup had promised them are told', async () => {
  const { bridge, source } = await trialOf();
  const key = { model_name: 'm', kv_rank: 0, object_group_id: 0, cache_salt: '' };
  const keys = Array.from({ length: 10 }, (_, index) => ({
    ...key,
    chunk_hash: Buffer.from([index]),
  }));
  const failed = { during: 'l1_retrieve', reason: 'not_found', keys };
  await bridge.send(bridgeFrames(0, [requestStart('r0'), ['l1.read.failed', 1000, '', failed]]));
  expect(await eventually(() => eventsOf(source) === 1)).toBe(true);
  expect(lmcacheNotices(source)).toMatchObject([{ code: 'lmcache_read_failures' }]);
  expect(lmcacheStatus(source).failures).toEqual({ 'l1_read_failure l1_retrieve not_found': 10 });
  expect(lmcacheReading(source).failing).toBe(true);
});

test('a bridge that goes away is told', async () => {
  const { bridge, source } = await trialOf();
  bridge.close();
  expect(await eventually(() => !source.listener.isConnected)).toBe(true);
  expect(lmcacheNotices(source).map(({ code }) => code)).toEqual(['lmcache_disconnected']);
});
