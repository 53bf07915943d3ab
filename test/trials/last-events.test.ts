/** Trials of what comes last: the flush of a stop, what queues hold then, and events that no message carried. */
import { connect } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { Flood } from '../support/flood.ts';
import { dumpOf } from '../support/held-blocks.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { natsServerAvailable } from '../support/nats-server.ts';
import { natsFlags, startNatsTrial, startTestServer } from '../support/nats-trial.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { eventsOf, type PublishedEvent, shown } from '../support/published-events.ts';
import { FollowingRouter, heldByNewcomer, query } from '../support/relay-queries.ts';
import { decodeEnvelope } from '../support/scenarios.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { f, St, trialConfig } from '../support/trials.ts';

/** Batch n stores the block behind that of the batch before it. */
function link(sequence: number): ReturnType<typeof f> {
  const parent = sequence > 0 ? { parent: sequence } : {};
  return f(sequence, [St(sequence + 1, parent)]);
}

/** Sends links until `isOver`, some 10,000 a second. */
async function streamLinks(
  send: (frames: Buffer[]) => Promise<void>,
  isOver: () => boolean,
): Promise<void> {
  for (let sequence = 0; !isOver(); ) {
    for (let count = 0; count < 20; count++) await send(link(sequence++));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function blocksUpTo(count: number): bigint[] {
  return Array.from({ length: count }, (_, index) => BigInt(index + 1));
}

function idsUpTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

test('what is pending when the stream ends is published and in the index', () => {
  const relay = new InProcessRelay({ ...trialConfig(), batchingTimeoutMs: 10_000 });
  relay.push(link(0));
  relay.push(link(1));
  relay.push(link(2));
  const published = (): string[] =>
    relay.published.flatMap(({ payload }) => eventsOf(payload).map(shown));
  expect(published()).toEqual([]);
  relay.stop();
  expect(published()).toEqual(['S#1(∅→1,2,3)']);
  const { blocks, ring } = relay.indexer;
  expect(dumpOf(blocks).flatMap(({ hashes }) => hashes)).toEqual([1n, 2n, 3n]);
  expect(ring.lastEventId).toBe(1);
});

test.each([
  ['', []],
  [' with a tail that waits for its deadline', ['--batching-timeout-ms', '300']],
])('a stop under load publishes all that was taken from the engine%s', async (_, flags) => {
  const trial = await SocketTrial.start({ flags });
  let isOver = false;
  const streaming = streamLinks(
    (frames) => trial.send(frames),
    () => isOver,
  );
  await trial.until(() => trial.rank().counters.received > 500);
  await trial.worker.stop();
  isOver = true;
  await streaming;
  const { engine, last_event_id, counters } = trial.rank();
  const taken = Number(engine.emitted_seq) + 1;
  expect(counters).toMatchObject({ received: taken, accepted: taken, published_blocks: taken });
  const last = Number(last_event_id);
  await eventually(() => trial.events().length >= last);
  expect(trial.events().map(({ id }) => Number(id))).toEqual(idsUpTo(last));
  expect(trial.events().flatMap(({ hashes }) => hashes)).toEqual(blocksUpTo(taken));
});

test('SIGTERM under load: a router that follows has every id up to the last one that left', async () => {
  const engine = await Flood.start({ seconds: 30, messagesPerS: 3000, blocks: 4 });
  const relay = await FaultProcess.ready([
    `--engine-endpoint=${engine.endpoint}`,
    '--plane-endpoint=tcp://127.0.0.1:0',
  ]);
  const { plane_endpoint } = (await relay.status()).ranks[0] ?? {};
  const router = new ZmqCollector(plane_endpoint ?? '');
  onTestFinished(() => router.close());
  await router.subscribed();
  const flood = engine.send().catch(() => undefined);
  const { ranks } = await relay.reaches(({ counters }) => counters.published_events > 1000);
  expect((await relay.terminate()).code).toBe(0);
  engine.kill();
  await flood;
  const events = router.published.flatMap(({ payload }) => eventsOf(payload));
  expect(events.length).toBeGreaterThan(Number(ranks[0]?.last_event_id));
  expect(events.map(({ id }) => Number(id))).toEqual(idsUpTo(events.length));
  expect(router.published.map(({ sequence }) => Number(sequence))).toEqual(
    router.published.map((_, index) => index),
  );
});

describe.skipIf(!natsServerAvailable())('on NATS', () => {
  async function follow(url: string, comesBackMs = 50): Promise<PublishedEvent[]> {
    const received: PublishedEvent[] = [];
    const reconnect = { maxReconnectAttempts: -1, reconnectTimeWait: comesBackMs };
    const router = await connect({ servers: url, reconnectJitter: 0, ...reconnect });
    onTestFinished(() => router.close());
    router.subscribe('namespace.>', {
      callback: (_error, { data }) => received.push(...eventsOf(decodeEnvelope(data).payload)),
    });
    await router.flush();
    return received;
  }

  async function startEngine(): Promise<EngineStub> {
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    return engine;
  }

  test('a stop under load publishes all that was taken from the engine', async () => {
    const server = await startTestServer();
    const received = await follow(server.url);
    const { worker, engine, connected } = await startNatsTrial(server.url, {
      KVRELAY_SHUTDOWN_TIMEOUT_MS: '5000',
    });
    await connected();
    let isOver = false;
    const streaming = streamLinks(
      (frames) => engine.send(frames),
      () => isOver,
    );
    const rank = () => worker.status().ranks[0];
    expect(await eventually(() => (rank()?.counters.received ?? 0) > 500)).toBe(true);
    await worker.stop();
    isOver = true;
    await streaming;
    const taken = Number(rank()?.engine.emitted_seq) + 1;
    expect(rank()?.counters.published_blocks).toBe(taken);
    await eventually(() => received.length >= Number(rank()?.last_event_id));
    expect(received.map(({ id }) => Number(id))).toEqual(idsUpTo(Number(rank()?.last_event_id)));
    expect(received.flatMap(({ hashes }) => hashes)).toEqual(blocksUpTo(taken));
  });

  test('N1: events in messages that the server turns out not to take are had by a query', async () => {
    const server = await startTestServer({ maxPayloadBytes: 65_536 });
    await server.stop();
    const engine = await startEngine();
    const relay = await FaultProcess.started([...natsFlags(engine, server), '--worker-id=7']);
    await engine.subscribed();
    await engine.send(f(0, [St(Array.from({ length: 5000 }, (_, index) => 100_000 + index))]));
    await relay.reaches(({ counters }) => counters.received === 1);
    const back = await startTestServer({ port: server.port, maxPayloadBytes: 65_536 });
    const received = await follow(back.url);
    await relay.reaches((_, { plane }) => plane.connected && plane.outbox_messages === 0);
    const tooLarge = { reason: 'payload_too_large' };
    expect(await relay.metric('kvrelay_publish_failures_total', tooLarge)).toBeGreaterThan(0);
    await engine.send(f(1, [St(7)]));
    expect(await eventually(() => received.length > 0)).toBe(true);
    const router = new FollowingRouter();
    expect(router.take(received[0] as PublishedEvent)).toBe(false);
    const status = await relay.status();
    router.believe(await query(status, 1));
    expect(router.held).toHaveLength(5001);
    expect(router.held).toEqual(await heldByNewcomer(status));
  });

  test('in strict an event over the limit is lost on the plane, and had by a query', async () => {
    const server = await startTestServer();
    const engine = await startEngine();
    const flags = [...natsFlags(engine, server), '--worker-id=7', '--compat=strict'];
    const relay = await FaultProcess.ready(flags);
    const received = await follow(server.url);
    await engine.send(f(0, [St(Array.from({ length: 30_000 }, (_, index) => 100_000 + index))]));
    await engine.send(f(1, [St(7)]));
    expect(await eventually(() => received.length === 1)).toBe(true);
    expect(received.map(shown)).toEqual(['S#2(∅→7)']);
    const tooLarge = { reason: 'payload_too_large' };
    expect(await relay.metric('kvrelay_publish_failures_total', tooLarge)).toBe(1);
    const { kind, events } = await query(await relay.status(), 1);
    expect([kind, events.map(({ hashes }) => hashes.length)]).toEqual(['Events', [30_000, 1]]);
  });

  test('a router that is back later than the relay learns by a heartbeat what it has missed', {
    timeout: 60_000,
  }, async () => {
    const place = new DiscoveryPlace();
    onTestFinished(() => place.close());
    const server = await startTestServer();
    const received = await follow(server.url, 5000);
    const engine = await startEngine();
    const relay = await FaultProcess.ready([
      ...natsFlags(engine, server),
      ...place.flags,
      '--worker-id=7',
    ]);
    server.kill('SIGKILL');
    await server.exited;
    await relay.reaches((_, { plane }) => !plane.connected);
    for (let sequence = 0; sequence < 10; sequence++) await engine.send(link(sequence));
    await relay.reaches(({ counters }) => counters.published_events === 10);
    await startTestServer({ port: server.port });
    await relay.reaches((_, { plane }) => plane.connected && plane.outbox_messages === 0);
    expect(await eventually(() => received.length > 0, 30_000)).toBe(true);
    const router = new FollowingRouter();
    const [heartbeat] = received as [PublishedEvent];
    expect([heartbeat.kind, heartbeat.hashes]).toEqual(['R', []]);
    expect(router.take(heartbeat)).toBe(false);
    router.believe(await query(await relay.status(), 1));
    expect(router.held).toHaveLength(10);
  });
});
