/** The ZMQ plane behind brokers: real sockets, a broker that comes late and one that goes. */
import { afterEach, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { eventsOf } from '../support/published-events.ts';
import { configOf } from '../support/worker-config.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startRelay(
  ...flags: string[]
): Promise<{ relay: Worker; send: (hash: number) => Promise<void> }> {
  const engine = await EngineStub.start();
  cleanups.push(() => engine.close());
  const own = ['--block-size', '4', '--http', 'off', '--engine-endpoint', engine.endpoint];
  const relay = createWorker(configOf(...own, ...flags), { logger });
  cleanups.push(() => relay.stop());
  await relay.start();
  await engine.subscribed();
  let sequence = 0;
  const send = (hash: number): Promise<void> =>
    engine.send(batchFrames(batch([storeEvent([hash])]), sequence++));
  return { relay, send };
}

async function subscribe(xpub: string): Promise<ZmqCollector> {
  const router = new ZmqCollector(xpub);
  cleanups.push(() => router.close());
  await router.subscribed();
  return router;
}

function xpubOf({ url }: ZmqBroker): string {
  return url.split('xpub=')[1] ?? '';
}

function numbers(router: ZmqCollector): number[] {
  return router.published.map(({ sequence }) => sequence);
}

test('messages wait for a broker that is not there yet, and then come whole and in order', async () => {
  const port = await freePorts(2);
  const url = `xsub=tcp://127.0.0.1:${port},xpub=tcp://127.0.0.1:${port + 1}`;
  const { relay, send } = await startRelay('--zmq-broker', url);
  for (let hash = 1; hash <= 20; hash++) await send(hash);
  const published = (): number => relay.status().ranks[0]?.counters.published_events ?? 0;
  expect(await eventually(() => published() === 20, 5000)).toBe(true);
  // Messages that batches share leave when the turn ends.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { outbox_messages: held, ...plane } = relay.status().plane;
  expect(plane).toMatchObject({ connected: false, endpoint: `tcp://127.0.0.1:${port}` });
  expect(relay.ready().waitingFor).toEqual(['the zmq plane']);
  const router = new ZmqCollector(`tcp://127.0.0.1:${port + 1}`);
  cleanups.push(() => router.close());
  const broker = await ZmqBroker.start(port);
  cleanups.push(() => broker.close());
  expect(await eventually(() => router.frames.length === held, 10_000)).toBe(true);
  expect(numbers(router)).toEqual(Array.from({ length: held }, (_, index) => index));
  const events = router.published.flatMap(({ payload }) => eventsOf(payload));
  expect(events.map(({ id }) => Number(id))).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
  expect(router.frames[0]?.[0]?.toString()).toBe(
    'namespace.dynamo.component.backend.endpoint.generate.kv-events',
  );
  expect(relay.ready().ready).toBe(true);
});

test('every broker of the list gets every message', async () => {
  const brokers = [await ZmqBroker.start(), await ZmqBroker.start()];
  for (const broker of brokers) cleanups.push(() => broker.close());
  const sides = brokers.map(({ url }) => url.split(',').map((side) => side.split('=')[1] ?? ''));
  const url = `xsub=${sides.map(([xsub]) => xsub).join(';')},xpub=${sides.map(([, xpub]) => xpub).join(';')}`;
  const routers: ZmqCollector[] = [];
  for (const broker of brokers) routers.push(await subscribe(xpubOf(broker)));
  const { relay, send } = await startRelay('--zmq-broker', url);
  await eventually(() => relay.ready().ready, 5000);
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (let hash = 1; hash <= 5; hash++) await send(hash);
  await eventually(() => routers.every((router) => router.frames.length === 5), 5000);
  expect(routers.map(numbers)).toEqual([
    [0, 1, 2, 3, 4],
    [0, 1, 2, 3, 4],
  ]);
});

test('while the broker is gone messages wait, and the new one gets them', async () => {
  const broker = await ZmqBroker.start();
  const port = Number(/xsub=tcp:\/\/127\.0\.0\.1:(\d+)/.exec(broker.url)?.[1]);
  const { relay, send } = await startRelay('--zmq-broker', broker.url);
  const first = await subscribe(xpubOf(broker));
  await eventually(() => relay.ready().ready, 5000);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await send(1);
  expect(await eventually(() => first.frames.length === 1, 5000)).toBe(true);
  await broker.close();
  expect(await eventually(() => !relay.status().plane.connected, 5000)).toBe(true);
  for (let hash = 2; hash <= 4; hash++) await send(hash);
  expect(await eventually(() => relay.status().plane.outbox_messages === 3, 5000)).toBe(true);
  const again = new ZmqCollector(xpubOf(broker));
  cleanups.push(() => again.close());
  const second = await ZmqBroker.start(port);
  cleanups.push(() => second.close());
  expect(await eventually(() => again.frames.length === 3, 15_000)).toBe(true);
  expect(numbers(again)).toEqual([1, 2, 3]);
});

test('behind a broker a source has no channel record', async () => {
  const place = new DiscoveryPlace();
  cleanups.push(() => place.close());
  const broker = await ZmqBroker.start();
  cleanups.push(() => broker.close());
  const { relay } = await startRelay(
    '--zmq-broker',
    broker.url,
    '--worker-id',
    '7',
    ...place.flags,
  );
  expect(await eventually(() => relay.ready().ready, 5000)).toBe(true);
  expect([place.sources.length, place.records('v1/event_channels').size]).toEqual([1, 0]);
  // Of the query address alone: the broker's is no concern of ours.
  const codes = relay.status().ranks[0]?.degraded.map(({ code }) => code);
  expect(codes).toEqual(['advertises_loopback']);
});
