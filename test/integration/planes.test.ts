/** What the planes do beside carrying messages: exact frames, waiting for a server, bounds. */
import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { framesOf } from '../support/in-process-relay.ts';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';
import { eventually, NatsCollector, ZmqCollector } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function started(...flags: string[]): Promise<{ engine: EngineStub; worker: Worker }> {
  const engine = await EngineStub.start();
  const http = flags.includes('--http') ? [] : ['--http', 'off'];
  const own = ['--engine-endpoint', engine.endpoint, '--block-size', '4'];
  const worker = createWorker(configOf(...own, ...http, ...flags), { logger });
  cleanups.push(
    () => engine.close(),
    () => worker.stop(),
  );
  await worker.start();
  await engine.subscribed();
  return { engine, worker };
}

/** A store of one root block, under its own sequence number. */
function storeFrames(sequence: number): Buffer[] {
  const number = sequence.toString(16).padStart(16, '0');
  const hash = `ce${(sequence + 1).toString(16).padStart(8, '0')}`;
  return framesOf([
    '',
    number,
    `93cb3ff00000000000009197ab426c6f636b53746f72656491${hash}c0940102030404c0a347505500`,
  ]);
}

test('Z7: four frames: topic, publisher id, sequence, and version, length and envelope', async () => {
  const { engine, worker } = await started('--plane-endpoint', 'tcp://127.0.0.1:0');
  const { endpoint } = worker.status().plane;
  const router = new ZmqCollector(endpoint ?? '');
  cleanups.push(() => router.close());
  await router.subscribed();
  await engine.send(storeFrames(0));
  await engine.send(storeFrames(1));
  await eventually(() => router.frames.length === 2);

  const publisherId = BigInt(worker.status().ranks[0]?.publisher_id ?? 0);
  for (const [sequence, frames] of router.frames.entries()) {
    const [topic, publisher, number, body] = frames as [Buffer, Buffer, Buffer, Buffer];
    expect(frames).toHaveLength(4);
    expect(topic.toString()).toBe('kv-events');
    expect([publisher.length, publisher.readBigUInt64BE()]).toEqual([8, publisherId]);
    expect([number.length, number.readBigUInt64BE()]).toEqual([8, BigInt(sequence)]);
    expect(body[0]).toBe(1);
    expect(body.readUInt32BE(1)).toBe(body.length - 5);
    expect(body[5]).toBe(0x85);
  }
});

describe.skipIf(!natsServerAvailable())('the NATS plane', () => {
  test('what a worker left unsent goes with it: the successor begins with its own first message', async () => {
    const placeholder = await startNatsServer();
    const { port, url } = placeholder;
    await placeholder.stop();
    const place = new DiscoveryPlace();
    cleanups.push(() => place.close());
    const removeWorker = place.addWorker(2n ** 64n - 1n);
    const nats = ['--event-plane', 'nats', '--nats-server', url];
    const http = ['--http', '127.0.0.1:0'];
    const { engine, worker } = await started(...nats, ...place.flags, ...http);
    await eventually(() => worker.status().ranks[0]?.worker_id !== null);
    for (let sequence = 0; sequence < 3; sequence++) await engine.send(storeFrames(sequence));
    expect(await eventually(() => worker.status().plane.outbox_messages === 3)).toBe(true);
    removeWorker();
    await eventually(() => worker.status().ranks[0]?.worker_id === null);
    place.addWorker(7n);
    await eventually(() => worker.status().ranks[0]?.worker_id === '7');
    for (let sequence = 3; sequence < 5; sequence++) await engine.send(storeFrames(sequence));
    expect(await eventually(() => worker.status().plane.outbox_messages === 2)).toBe(true);
    const scraped = await (await fetch(`${worker.httpUrl}/metrics`)).text();
    expect(scraped).toContain('kvrelay_superseded_messages_total{dp_rank="0"} 3');

    const server = await startNatsServer({ port });
    cleanups.push(() => server.stop());
    const router = await NatsCollector.connect(server.url);
    cleanups.push(() => router.close());
    const received = () =>
      router.on('namespace.dynamo.component.backend.endpoint.generate.kv-events');
    expect(await eventually(() => received().length === 2)).toBe(true);
    expect(received().map(({ sequence }) => sequence)).toEqual([0, 1]);
    expect(await eventually(() => worker.status().plane.outbox_messages === 0)).toBe(true);
  });

  test('waits for a server that is not there yet and then sends what it held, in order', async () => {
    const placeholder = await startNatsServer();
    const { port, url } = placeholder;
    await placeholder.stop();
    const { engine, worker } = await started('--event-plane', 'nats', '--nats-server', url);
    for (let sequence = 0; sequence < 50; sequence++) await engine.send(storeFrames(sequence));
    await eventually(() => worker.status().ranks[0]?.counters.published_events === 50);
    // Messages that batches share leave when the turn ends.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { connected, outbox_messages: held } = worker.status().plane;
    expect(connected).toBe(false);
    expect(held).toBeGreaterThan(0);
    expect(worker.ready()).toMatchObject({ ready: false, waitingFor: ['the nats plane'] });

    const server = await startNatsServer({ port });
    cleanups.push(() => server.stop());
    const routers = await NatsCollector.connect(server.url);
    cleanups.push(() => routers.close());
    const subject = 'namespace.dynamo.component.backend.endpoint.generate.kv-events';
    await eventually(() => routers.on(subject).length >= held, 15_000);
    // The server may have taken some before this subscriber was there; none came twice or late.
    const numbers = routers.on(subject).map(({ sequence }) => sequence);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(numbers.at(-1)).toBe(held - 1);
    // Kept until the server has confirmed them.
    await eventually(() => worker.status().plane.outbox_messages === 0);
    expect(worker.status().plane).toMatchObject({ connected: true, outbox_messages: 0 });
    expect(worker.ready().ready).toBe(true);
  });

  test('a full outbox gives up the oldest messages and counts them', async () => {
    const placeholder = await startNatsServer();
    await placeholder.stop();
    const { engine, worker } = await started(
      '--event-plane',
      'nats',
      '--nats-server',
      placeholder.url,
      '--outbox-bytes',
      '65536',
      '--shutdown-timeout-ms',
      '300',
    );
    for (let sequence = 0; sequence < 1000; sequence++) await engine.send(storeFrames(sequence));
    await eventually(() => worker.status().ranks[0]?.counters.published_events === 1000);
    const { plane, ranks } = worker.status();
    expect(plane.outbox_bytes).toBeLessThanOrEqual(65_536);
    expect(ranks[0]?.degraded.map(({ code }) => code)).toContain('outbox_dropping');
  });
});
