/** What a broken or frozen NATS server costs: nothing but time. */

import { unpack } from 'msgpackr';
import { connect, type NatsConnection } from 'nats';
import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import {
  type NatsServerProcess,
  natsServerAvailable,
  startNatsServer,
} from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { decodeEnvelope } from '../support/scenarios.ts';
import { configOf } from '../support/worker-config.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];
/** `npm run test:faults` plays the whole of what CI plays scaled down. */
const isWhole = process.env.KVRELAY_FAULTS === 'whole';
const CYCLES = isWhole ? 10 : 3;
const BATCHES_PER_S = isWhole ? 2000 : 500;

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Only stores are sent here. */
interface StoredEvent {
  event: { event_id: number; data: { stored: { blocks: unknown[] } } };
}

interface Received {
  sequence: number;
  ids: number[];
  blocks: number;
  envelope: Buffer;
}

/** A router that comes back within 100 ms and keeps everything it gets. */
async function startRouter(
  url: string,
): Promise<{ connection: NatsConnection; received: Received[] }> {
  const received: Received[] = [];
  const connection = await connect({
    servers: url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    reconnectJitter: 25,
  });
  connection.subscribe('namespace.>', {
    callback: (_error, { data }) => {
      const { sequence, payload } = decodeEnvelope(data);
      const events = unpack(payload) as StoredEvent[];
      const ids = events.map(({ event }) => event.event_id);
      const blocks = events.reduce((sum, one) => sum + one.event.data.stored.blocks.length, 0);
      received.push({ sequence, ids, blocks, envelope: Buffer.from(data) });
    },
  });
  await connection.flush();
  cleanups.push(() => connection.close());
  return { connection, received };
}

async function startWorker(url: string, ...flags: string[]): Promise<[Worker, EngineStub]> {
  const engine = await EngineStub.start();
  const worker = createWorker(
    configOf(
      '--engine-endpoint',
      engine.endpoint,
      '--block-size',
      '4',
      '--http',
      '127.0.0.1:0',
      '--event-plane',
      'nats',
      '--nats-server',
      url,
      ...flags,
    ),
    { logger },
  );
  cleanups.push(
    () => engine.close(),
    () => worker.stop(),
  );
  await worker.start();
  await engine.subscribed();
  await eventually(() => worker.ready().ready);
  return [worker, engine];
}

function blocksIn(received: readonly Received[]): number {
  return received.reduce((sum, { blocks }) => sum + blocks, 0);
}

/** Ids in order of arrival without those that came before. */
function withoutDuplicates(received: readonly Received[]): number[] {
  const seen = new Set<number>();
  return received.flatMap(({ ids }) => ids).filter((id) => !seen.has(id) && seen.add(id));
}

/** One store a batch, at a steady rate, until `isOver`; returns how many went out. */
async function stream(engine: EngineStub, isOver: () => boolean): Promise<number> {
  const startMs = performance.now();
  let sent = 0;
  while (!isOver()) {
    const due = ((performance.now() - startMs) / 1000) * BATCHES_PER_S;
    for (; sent < due; sent++)
      await engine.send(batchFrames(batch([storeEvent([sent + 1])]), sent));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return sent;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!natsServerAvailable())('NATS outages', () => {
  test(
    'resend: killed, frozen and restarted under load, every id arrives, in order',
    async () => {
      let server: NatsServerProcess = await startNatsServer();
      cleanups.push(() => server.stop());
      const { received } = await startRouter(server.url);
      const [worker, engine] = await startWorker(server.url, '--nats-resume-delay-ms', '600');
      let isOver = false;
      const streaming = stream(engine, () => isOver);
      for (let cycle = 0; cycle < CYCLES; cycle++) {
        await pause(700);
        if (cycle % 2 === 0) {
          server.kill('SIGKILL');
          await server.exited;
          await pause(300);
          server = await startNatsServer({ port: server.port });
        } else {
          server.kill('SIGSTOP');
          await pause(1500);
          server.kill('SIGCONT');
        }
        await eventually(() => worker.status().plane.connected);
      }
      await pause(1000);
      isOver = true;
      const sent = await streaming;
      await eventually(() => worker.status().plane.outbox_messages === 0, 20_000);
      await eventually(() => new Set(received.flatMap(({ ids }) => ids)).size === sent, 20_000);
      expect(withoutDuplicates(received)).toEqual(Array.from({ length: sent }, (_, i) => i + 1));
      const bySequence = new Map<number, Buffer>();
      for (const { sequence, envelope } of received) {
        const first = bySequence.get(sequence) ?? envelope;
        expect(first.equals(envelope)).toBe(true);
        bySequence.set(sequence, first);
      }
      expect(worker.status().ranks[0]?.degraded).toEqual([]);
    },
    isWhole ? 120_000 : 60_000,
  );

  test('the engine is read on while the server is away, and the outbox stays in its bound', async () => {
    const server = await startNatsServer();
    const [worker, engine] = await startWorker(
      server.url,
      '--outbox-bytes',
      '100000',
      '--shutdown-timeout-ms',
      '300',
    );
    server.kill('SIGKILL');
    await server.exited;
    await eventually(() => !worker.status().plane.connected);
    for (let sequence = 0; sequence < 2000; sequence++) {
      await engine.send(batchFrames(batch([storeEvent([sequence + 1])]), sequence));
    }
    await eventually(() => worker.status().ranks[0]?.counters.received === 2000);
    const { plane, ranks } = worker.status();
    expect(ranks[0]?.counters.received).toBe(2000);
    expect(plane.outbox_bytes).toBeLessThanOrEqual(100_000);
    expect(ranks[0]?.degraded.map(({ code }) => code)).toEqual([
      'plane_disconnected',
      'outbox_dropping',
    ]);
  });

  test('a stop against a frozen server ends in its time', async () => {
    const server = await startNatsServer();
    cleanups.push(() => server.stop());
    const flags = ['--shutdown-timeout-ms', '1000'];
    const [worker, engine] = await startWorker(server.url, ...flags);
    server.kill('SIGSTOP');
    for (let sequence = 0; sequence < 100; sequence++) {
      await engine.send(batchFrames(batch([storeEvent([sequence + 1])]), sequence));
    }
    await eventually(() => worker.status().ranks[0]?.counters.received === 100);
    const startMs = performance.now();
    await worker.stop();
    expect(performance.now() - startMs).toBeLessThan(2500);
    server.kill('SIGCONT');
  });

  test('N6: one outage is one disconnect and one reconnect', async () => {
    let server = await startNatsServer();
    cleanups.push(() => server.stop());
    const [worker] = await startWorker(server.url);
    server.kill('SIGKILL');
    await server.exited;
    await eventually(() => !worker.status().plane.connected);
    await pause(2000);
    server = await startNatsServer({ port: server.port });
    await eventually(() => worker.status().plane.connected);
    const text = await (await fetch(`${worker.httpUrl}/metrics`)).text();
    expect(text).toContain('kvrelay_plane_disconnects_total 1');
    expect(text).toContain('kvrelay_plane_reconnects_total 1');
  });

  test('N1: messages follow the announced limit', async () => {
    const server = await startNatsServer({ maxPayloadBytes: 4096 });
    cleanups.push(() => server.stop());
    const { received } = await startRouter(server.url);
    const [worker, engine] = await startWorker(server.url);
    // Each of tokens of its own: a router holds one block at a place.
    const roots = Array.from({ length: 200 }, (_, index) =>
      storeEvent([index + 1], null, { token_ids: tokensFrom(10_000 + index * 4, 4) }),
    );
    await engine.send(batchFrames(batch(roots)));
    const many = Array.from({ length: 600 }, (_, index) => 10_000 + index);
    await engine.send(batchFrames(batch([storeEvent(many)]), 1));
    await eventually(() => worker.status().plane.outbox_messages === 0);
    await eventually(() => blocksIn(received) === 800);
    expect(Math.max(...received.map(({ envelope }) => envelope.length))).toBeLessThanOrEqual(4096);
    expect(received.length).toBeGreaterThan(10);
    expect(worker.status().plane.connected).toBe(true);
    const ids = received.flatMap((one) => one.ids);
    expect(ids).toEqual(ids.map((_, index) => index + 1));
    expect(worker.status().ranks[0]?.blocks.device).toBe(800);
  });
  test('N1: what waits for a server that turns out to allow less is dropped, the rest goes on', async () => {
    const server = await startNatsServer({ maxPayloadBytes: 65_536 });
    const { url, port } = server;
    await server.stop();
    const [worker, engine] = await startWorker(url);
    const large = Array.from({ length: 20_000 }, (_, index) => 100_000 + index);
    for (let sequence = 0; sequence < 3; sequence++) {
      await engine.send(batchFrames(batch([storeEvent(large)]), sequence));
    }
    expect(await eventually(() => worker.status().ranks[0]?.counters.received === 3)).toBe(true);
    const back = await startNatsServer({ port, maxPayloadBytes: 65_536 });
    cleanups.push(() => back.stop());
    const { received } = await startRouter(url);
    expect(await eventually(() => worker.status().plane.connected)).toBe(true);
    for (let sequence = 3; sequence < 20; sequence++) {
      await engine.send(batchFrames(batch([storeEvent([sequence])]), sequence));
    }
    expect(await eventually(() => blocksIn(received) === 17)).toBe(true);
    expect(await eventually(() => worker.status().plane.outbox_messages === 0)).toBe(true);
    const text = await (await fetch(`${worker.httpUrl}/metrics`)).text();
    expect(text).toMatch(/kvrelay_publish_failures_total\{[^}]*payload_too_large[^}]*\} [1-9]/);
  });
});
