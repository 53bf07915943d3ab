/** A relay in the file registry, on real directories and sockets: whom it finds, what it announces. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { sourceKey } from '../../src/protocol/discovery-keys.ts';
import { channelRecord, sourceRecord } from '../../src/protocol/discovery-records.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { eventsOf } from '../support/published-events.ts';
import { configOf } from '../support/worker-config.ts';

const A = 2n ** 64n - 1n;
const B = 2n ** 63n + 1n;
const ENDPOINT = { namespace: 'dynamo', component: 'backend', endpoint: 'generate' };
const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function makePlace(): DiscoveryPlace {
  const place = new DiscoveryPlace();
  cleanups.push(() => place.close());
  return place;
}

async function startEngine(): Promise<EngineStub> {
  const engine = await EngineStub.start();
  cleanups.push(() => engine.close());
  return engine;
}

async function startRelay(
  place: DiscoveryPlace,
  engine: EngineStub,
  ...flags: string[]
): Promise<Worker> {
  const http = flags.includes('--http') ? [] : ['--http', 'off'];
  const own = ['--engine-endpoint', engine.endpoint, '--plane-endpoint', 'tcp://127.0.0.1:0'];
  const config = configOf('--block-size', '4', ...http, ...own, ...place.flags, ...flags);
  const relay = createWorker(config, { logger });
  cleanups.push(() => relay.stop());
  await relay.start();
  return relay;
}

function rankOf(relay: Worker, index = 0) {
  const rank = relay.status().ranks[index];
  if (rank === undefined) throw new Error('no such rank');
  return rank;
}

function codes(relay: Worker, index = 0): string[] {
  return rankOf(relay, index).degraded.map(({ code }) => code);
}

/** `worker/rank` of each source that stands. */
function claims(place: DiscoveryPlace): string[] {
  return place.sources
    .map(({ metadata: { worker } }) => `${worker.worker_id}/${worker.dp_rank}`)
    .sort();
}

/** A source of somebody who is no relay of ours. */
function addOther(place: DiscoveryPlace, workerId: bigint, publisherId = 4711): () => void {
  const identity = { endpoint: ENDPOINT, workerId, dpRank: 0, publisherId };
  const { bucket, key, value } = sourceRecord(identity, { host: 'x', engineEndpoint: 'y' }, null);
  return place.add(bucket, key, value);
}

test('a given worker id is announced at once: channel and source, with the address of the plane', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const relay = await startRelay(place, engine, '--worker-id', A.toString());
  expect(await eventually(() => relay.ready().ready, 3000)).toBe(true);
  const { publisher_id: publisherId, plane_endpoint: endpoint } = rankOf(relay);
  expect(claims(place)).toEqual([`${A}/0`]);
  const key = sourceKey(ENDPOINT, Number(publisherId));
  expect([...place.records('v1/event_sources').keys()]).toEqual([key]);
  const channel = place.records('v1/event_channels').get(key) ?? '{}';
  expect(JSON.parse(channel)).toMatchObject({
    instance_id: Number(publisherId),
    transport: { kind: 'Zmq', config: { endpoint } },
  });
  expect(codes(relay)).toEqual(['advertises_loopback']);
  await relay.stop();
  expect([place.sources.length, place.records('v1/event_channels').size]).toEqual([0, 0]);
});

test.each([
  ['routers of this host alone can ask', [], ['advertises_loopback']],
  ['nobody can ask', ['--request-plane', 'none'], []],
])('where events need no address, loopback is shown only if %s', async (_, flags, shown) => {
  const place = makePlace();
  const engine = await startEngine();
  const own = ['--worker-id', '7', '--event-plane', 'none', ...flags];
  const relay = await startRelay(place, engine, ...own);
  await engine.subscribed();
  expect(await eventually(() => claims(place).length === 1, 3000)).toBe(true);
  expect(codes(relay)).toEqual(shown);
});

test('each rank has a source, a channel and a publisher id of its own', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const ranks = ['--dp-size', '3', '--dp-rank', '4', '--engine-sockets', 'shared'];
  const relay = await startRelay(place, engine, '--worker-id', '7', ...ranks);
  expect(await eventually(() => relay.ready().ready, 3000)).toBe(true);
  expect(claims(place)).toEqual(['7/4', '7/5', '7/6']);
  const channels = [...place.records('v1/event_channels').values()];
  const addresses = channels.map(
    (value) => (JSON.parse(value) as { transport: { config: { endpoint: string } } }).transport,
  );
  expect(new Set(addresses.map(({ config }) => config.endpoint)).size).toBe(3);
});

test('auto: nothing is published until the worker is found, then all of it under its id from 1', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const relay = await startRelay(place, engine);
  await engine.subscribed();
  await engine.send(batchFrames(batch([storeEvent([1, 2])]), 0));
  expect(await eventually(() => rankOf(relay).blocks.device === 2, 3000)).toBe(true);
  expect(rankOf(relay)).toMatchObject({ worker_id: null, last_event_id: null });
  expect(rankOf(relay).counters.published_events).toBe(0);
  expect(relay.ready().waitingFor).toEqual(['the worker in discovery']);
  expect(codes(relay)).toContain('worker_missing');

  const router = new ZmqCollector(rankOf(relay).plane_endpoint ?? '');
  cleanups.push(() => router.close());
  await router.subscribed();
  place.addWorker(A);
  expect(await eventually(() => relay.ready().ready, 2000)).toBe(true);
  expect(claims(place)).toEqual([`${A}/0`]);
  await engine.send(batchFrames(batch([storeEvent([3], 2)]), 1));
  expect(await eventually(() => router.frames.length === 1, 3000)).toBe(true);
  const [event] = eventsOf(router.published[0]?.payload ?? Buffer.of(0x90));
  expect([event?.workerId, event?.id]).toEqual([A, 1n]);
  expect(router.published[0]?.sequence).toBe(0);
  const { publisher_id: publisherId } = rankOf(relay);
  expect(router.frames[0]?.[1]?.readBigUInt64BE().toString()).toBe(publisherId);
  expect(place.sources[0]?.publisher_id).toBe(Number(publisherId));
});

test('a successor is a new incarnation, and meanwhile nothing stands', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const removeA = place.addWorker(A);
  const relay = await startRelay(place, engine, '--http', '127.0.0.1:0');
  await engine.subscribed();
  expect(await eventually(() => relay.ready().ready, 2000)).toBe(true);
  await engine.send(batchFrames(batch([storeEvent([1])]), 0));
  await eventually(() => rankOf(relay).last_event_id === '1');
  const first = rankOf(relay).publisher_id;
  removeA();
  expect(await eventually(() => place.sources.length === 0, 2000)).toBe(true);
  // The source goes first.
  expect(await eventually(() => place.records('v1/event_channels').size === 0, 2000)).toBe(true);
  expect(codes(relay)).toContain('worker_missing');
  expect(relay.ready().ready).toBe(true);

  place.addWorker(B);
  expect(await eventually(() => claims(place).length === 1, 2000)).toBe(true);
  expect(claims(place)).toEqual([`${B}/0`]);
  expect(rankOf(relay)).toMatchObject({ worker_id: B.toString(), last_event_id: null });
  expect(rankOf(relay).publisher_id).not.toBe(first);
  await engine.send(batchFrames(batch([storeEvent([2], 1)]), 1));
  expect(await eventually(() => rankOf(relay).last_event_id === '1', 3000)).toBe(true);
  expect(rankOf(relay).blocks.device).toBe(2);
  const scraped = await (await fetch(`${relay.httpUrl}/metrics`)).text();
  expect(scraped).toContain(`worker_id="${B.toString(16)}"`);
  expect(scraped).toContain('kvrelay_discovery_announcements_total 2');
});

test('several workers: it waits and lists them, and takes the one that stays', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const removeA = place.addWorker(A);
  place.addWorker(B);
  const relay = await startRelay(place, engine);
  await eventually(() => codes(relay).includes('worker_ambiguous'), 2000);
  const notice = rankOf(relay).degraded.find(({ code }) => code === 'worker_ambiguous');
  expect(notice?.message).toContain(A.toString(16));
  expect(notice?.message).toContain(B.toString(16));
  expect(place.sources).toEqual([]);
  removeA();
  expect(await eventually(() => claims(place).includes(`${B}/0`), 2000)).toBe(true);
});

test('ambiguous: another source is noticed within 1 s and conceded to until it is gone', async () => {
  const place = makePlace();
  const engine = await startEngine();
  place.addWorker(A);
  const relay = await startRelay(place, engine);
  expect(await eventually(() => claims(place).length === 1, 2000)).toBe(true);
  const { publisher_id: publisherId } = rankOf(relay);
  const removeOther = addOther(place, A);
  expect(await eventually(() => codes(relay).includes('ambiguous_source'), 1000)).toBe(true);
  expect(await eventually(() => place.sources.length === 1, 1000)).toBe(true);
  expect(place.sources[0]?.publisher_id).toBe(4711);
  // What is around the source stays: only its record is a claim.
  expect(place.records('v1/event_channels').size).toBe(1);
  removeOther();
  expect(await eventually(() => place.sources.length === 1, 3000)).toBe(true);
  expect(place.sources[0]?.publisher_id).toBe(Number(publisherId));
  expect(codes(relay)).not.toContain('ambiguous_source');
});

test('ambiguous: a source of another rank or worker is none of ours', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const relay = await startRelay(place, engine, '--worker-id', A.toString());
  expect(await eventually(() => claims(place).length === 1, 2000)).toBe(true);
  addOther(place, B);
  await new Promise((resolve) => setTimeout(resolve, 1200));
  expect(claims(place)).toEqual([`${B}/0`, `${A}/0`].sort());
  expect(codes(relay)).toEqual(['advertises_loopback']);
});

test('a source that stood before us is not contradicted for a moment', async () => {
  const place = makePlace();
  const engine = await startEngine();
  place.addWorker(A);
  addOther(place, A);
  for (const flags of [[], ['--worker-id', A.toString()]]) {
    const relay = await startRelay(place, engine, ...flags);
    await eventually(() => codes(relay).includes('ambiguous_source'), 2000);
    expect(codes(relay)).toContain('ambiguous_source');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(place.sources.map((source) => source.publisher_id)).toEqual([4711]);
    await relay.stop();
  }
});

test('--on-ambiguous stay: both stand, and it is shown', async () => {
  const place = makePlace();
  const engine = await startEngine();
  place.addWorker(A);
  addOther(place, A);
  const relay = await startRelay(place, engine, '--on-ambiguous', 'stay');
  expect(await eventually(() => claims(place).length === 2, 2000)).toBe(true);
  expect(codes(relay)).toContain('ambiguous_source');
});

test('of two relays for one worker exactly one ends up announced, and the other takes over', async () => {
  const place = makePlace();
  const engines = [await startEngine(), await startEngine()] as const;
  const flags = ['--worker-id', A.toString()];
  const [one, two] = await Promise.all(
    engines.map((engine) => startRelay(place, engine, ...flags)),
  );
  if (one === undefined || two === undefined) throw new Error('no relays');
  const isOne = (): boolean => place.sources.length === 1;
  await new Promise((resolve) => setTimeout(resolve, 3000));
  expect(await eventually(isOne, 8000)).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(place.sources.length).toBe(1);
  const holder = place.sources[0]?.publisher_id;
  const [first, second] =
    Number(rankOf(one).publisher_id) === holder ? [one, two] : ([two, one] as const);
  await first.stop();
  const takenOver = (): boolean =>
    place.sources[0]?.publisher_id === Number(rankOf(second).publisher_id);
  expect(await eventually(takenOver, 4000)).toBe(true);
});

test('of the same relay started twice the later one is followed, the earlier yields and takes over again', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const flags = ['--worker-id', A.toString()];
  const holders = (): number[] => place.sources.map((source) => source.publisher_id);
  const earlier = await startRelay(place, engine, ...flags);
  const ofEarlier = Number(rankOf(earlier).publisher_id);
  expect(await eventually(() => holders()[0] === ofEarlier, 2000)).toBe(true);
  const later = await startRelay(place, engine, ...flags);
  const ofLater = Number(rankOf(later).publisher_id);
  const isLaterAlone = (): boolean => holders().length === 1 && holders()[0] === ofLater;
  expect(await eventually(isLaterAlone, 2000)).toBe(true);
  const endMs = performance.now() + 4000;
  while (performance.now() < endMs) {
    expect(isLaterAlone()).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(codes(earlier)).toContain('ambiguous_source');
  await later.stop();
  expect(await eventually(() => holders()[0] === ofEarlier, 4000)).toBe(true);
});

test('after a crash the records of before go first, and the source stands without delay', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const crashed = { endpoint: ENDPOINT, workerId: A, dpRank: 0, publisherId: 99 };
  const mark = { host: hostname(), engineEndpoint: engine.endpoint };
  for (const { bucket, key, value } of [
    sourceRecord(crashed, mark, null),
    channelRecord(crashed, mark, { kind: 'nats' }),
  ]) {
    // Nobody touches them, but no router has deleted them yet.
    place.add(bucket, key, value);
  }
  const relay = await startRelay(
    place,
    engine,
    '--worker-id',
    A.toString(),
    '--http',
    '127.0.0.1:0',
  );
  const { publisher_id: publisherId } = rankOf(relay);
  const standsAlone = (): boolean =>
    place.sources.length === 1 && place.sources[0]?.publisher_id === Number(publisherId);
  expect(await eventually(standsAlone, 500)).toBe(true);
  expect([...place.records('v1/event_channels').keys()]).toEqual([
    sourceKey(ENDPOINT, Number(publisherId)),
  ]);
  const scraped = await (await fetch(`${relay.httpUrl}/metrics`)).text();
  expect(scraped).toContain('kvrelay_discovery_evicted_records_total 2');
});

test('a registry that cannot be written is shown and written later; events flow all the while', async () => {
  const place = makePlace();
  const engine = await startEngine();
  const blocker = join(place.directory, 'v1');
  writeFileSync(blocker, '');
  chmodSync(blocker, 0o600);
  const relay = await startRelay(place, engine, '--worker-id', '7');
  await engine.subscribed();
  await engine.send(batchFrames(batch([storeEvent([1])]), 0));
  expect(await eventually(() => rankOf(relay).last_event_id === '1', 3000)).toBe(true);
  expect(codes(relay)).toContain('discovery_unavailable');
  expect(relay.ready().ready).toBe(false);
  rmSync(blocker);
  expect(await eventually(() => relay.ready().ready, 5000)).toBe(true);
  expect(claims(place)).toEqual(['7/0']);
  expect(codes(relay)).toEqual(['advertises_loopback']);
});

test('a model card that makes routers ignore a rank is said once, however often it is rewritten', async () => {
  const place = makePlace();
  const engine = await startEngine();
  place.addWorker(A);
  const lines: string[] = [];
  const out = { write: (line: string) => void lines.push(line) };
  const ranks = [
    '--dp-size',
    '2',
    '--engine-sockets',
    'shared',
    '--plane-endpoint',
    'tcp://127.0.0.1:0',
  ];
  const own = ['--block-size', '4', '--http', 'off', '--engine-endpoint', engine.endpoint];
  const relay = createWorker(configOf(...own, ...ranks, ...place.flags), {
    logger: createLogger({ level: 'warn', format: 'json', out }),
  });
  cleanups.push(() => relay.stop());
  await relay.start();
  const card = (blocks: number): string =>
    `{"type":"Model","card_json":{"kv_cache_block_size":8,"runtime_config":{"total_kv_blocks":${blocks},"data_parallel_start_rank":0,"data_parallel_size":1}}}`;
  const key = `dynamo/backend/generate/${A.toString(16)}`;
  for (let blocks = 1; blocks <= 3; blocks++) {
    place.add('v1/mdc', key, card(blocks));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const causes = lines.map((line) => (JSON.parse(line) as { cause?: string }).cause);
  expect(causes.filter((cause) => cause?.startsWith('card_'))).toEqual([
    'card_ranks',
    'card_block_size',
  ]);
});
