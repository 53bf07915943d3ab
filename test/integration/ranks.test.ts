/** Engine sockets and ranks: which socket, which relay, and what is counted, on real sockets. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { unpack } from 'msgpackr';
import { afterEach, expect, test } from 'vitest';
import { errorLine } from '../../src/errors.ts';
import { createLogger } from '../../src/log.ts';
import type { RankStatus } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startWorker(...flags: string[]): Promise<Worker> {
  const plane = ['--plane-endpoint', 'tcp://127.0.0.1:0'];
  const http = flags.includes('--http') ? [] : ['--http', 'off'];
  const config = configOf('--block-size', '4', ...http, ...plane, ...flags);
  const worker = createWorker(config, { logger });
  cleanups.push(() => worker.stop());
  await worker.start();
  return worker;
}

async function startEngine(endpoint: string): Promise<EngineStub> {
  const engine = await EngineStub.start(endpoint);
  cleanups.push(() => engine.close());
  return engine;
}

function rank(worker: Worker, dpRank: number): RankStatus {
  const status = worker.status().ranks.find((one) => one.dp_rank === dpRank);
  if (status === undefined) throw new Error(`no rank ${dpRank}`);
  return status;
}

function published(worker: Worker): Record<number, number> {
  const { ranks } = worker.status();
  return Object.fromEntries(ranks.map((one) => [one.dp_rank, one.counters.published_events]));
}

test('one listener a rank, each on its own port, and a plane address for each', async () => {
  const base = await freePorts(3);
  const engines: EngineStub[] = [];
  for (const offset of [0, 1, 2]) {
    engines.push(await startEngine(`tcp://127.0.0.1:${base + offset}`));
  }
  const flags = [
    '--engine-endpoint',
    `tcp://127.0.0.1:${base}`,
    '--dp-size',
    '3',
    '--dp-rank',
    '4',
  ];
  const worker = await startWorker(...flags);
  for (const engine of engines) await engine.subscribed();
  const routers = worker.status().ranks.map((one) => new ZmqCollector(one.plane_endpoint ?? ''));
  for (const router of routers) {
    cleanups.push(() => router.close());
    await router.subscribed();
  }
  for (const [index, engine] of engines.entries()) {
    await engine.send(batchFrames(batch([storeEvent([index + 1])], 4 + index)));
  }
  await eventually(() => routers.every((router) => router.frames.length === 1));
  expect(published(worker)).toEqual({ 4: 1, 5: 1, 6: 1 });
  expect(new Set(worker.status().ranks.map((one) => one.publisher_id)).size).toBe(3);
  const ranks = routers.map((router) => {
    const [event] = unpack(router.published[0]?.payload ?? Buffer.of(0x90)) as [
      { event: { dp_rank: number; event_id: number } },
    ];
    return [event.event.dp_rank, event.event.event_id];
  });
  expect(ranks).toEqual([
    [4, 1],
    [5, 1],
    [6, 1],
  ]);
});

test('routes batches to the relay of their rank, and drops those of a foreign one', async () => {
  const engine = await startEngine('tcp://127.0.0.1:0');
  const flags = ['--engine-endpoint', engine.endpoint, '--dp-rank', '2'];
  const worker = await startWorker(...flags, '--dp-size', '2', '--engine-sockets', 'shared');
  await engine.subscribed();
  const ranks = [2, 3, null, 5, 0, 3];
  for (const [sequence, dpRank] of ranks.entries()) {
    await engine.send(batchFrames(batch([storeEvent([sequence + 1])], dpRank), sequence));
  }
  await eventually(() => published(worker)[2] === 2 && published(worker)[3] === 2);
  expect(published(worker)).toEqual({ 2: 2, 3: 2 });
  expect([rank(worker, 2).last_event_id, rank(worker, 3).last_event_id]).toEqual(['2', '2']);
});

test('strict passes every rank under the ids of its one relay', async () => {
  const engine = await startEngine('tcp://127.0.0.1:0');
  const worker = await startWorker('--engine-endpoint', engine.endpoint, '--compat', 'strict');
  await engine.subscribed();
  for (const [sequence, dpRank] of [0, 5, null].entries()) {
    await engine.send(batchFrames(batch([storeEvent([sequence + 1])], dpRank), sequence));
  }
  await eventually(() => published(worker)[0] === 3);
  expect(published(worker)).toEqual({ 0: 3 });
});

test('lost-batches: a jump is counted, degrades the rank, and in safe moves Dynamo’s counter', async () => {
  for (const compat of ['safe', 'strict']) {
    const engine = await startEngine('tcp://127.0.0.1:0');
    const worker = await startWorker(
      '--engine-endpoint',
      engine.endpoint,
      '--compat',
      compat,
      '--http',
      '127.0.0.1:0',
    );
    await engine.subscribed();
    for (const sequence of [0, 1, 5]) {
      await engine.send(batchFrames(batch([storeEvent([sequence + 1])]), sequence));
    }
    await eventually(() => published(worker)[0] === 3);
    const { counters, degraded } = rank(worker, 0);
    expect(counters.lost_batches).toBe(3);
    expect(degraded.map(({ code }) => code)).toEqual(['engine_gap']);
    const scraped = await (await fetch(`${worker.httpUrl}/metrics`)).text();
    const dropped = /engines_dropped_events_total\{[^}]*\} (\d+)/.exec(scraped)?.[1];
    expect(dropped).toBe(compat === 'safe' ? '3' : '0');
    await engine.send(batchFrames(batch([{ type: 'AllBlocksCleared' }]), 6));
    await eventually(() => rank(worker, 0).degraded.length === 0);
    expect(rank(worker, 0).degraded).toEqual([]);
  }
});

test('a gap on a shared socket marks every rank of it', async () => {
  const engine = await startEngine('tcp://127.0.0.1:0');
  const flags = ['--engine-endpoint', engine.endpoint, '--dp-size', '2'];
  const worker = await startWorker(...flags, '--engine-sockets', 'shared');
  await engine.subscribed();
  for (const sequence of [0, 9]) {
    await engine.send(batchFrames(batch([storeEvent([sequence + 1])], 1), sequence));
  }
  await eventually(() => published(worker)[1] === 2);
  const codes = worker.status().ranks.map((one) => one.degraded.map(({ code }) => code));
  expect(codes).toEqual([['engine_gap'], ['engine_gap']]);
});

test('binds where the engine connects', async () => {
  const port = await freePorts(1);
  const endpoint = `tcp://127.0.0.1:${port}`;
  const worker = await startWorker('--engine-endpoint', endpoint, '--engine-bind');
  const engine = EngineStub.connect(endpoint);
  cleanups.push(() => engine.close());
  await engine.subscribed();
  await engine.send(batchFrames(batch([storeEvent([1])])));
  await eventually(() => published(worker)[0] === 1);
  expect(rank(worker, 0).engine.connected).toBe(true);
  expect(published(worker)).toEqual({ 0: 1 });
});

test('reads from an ipc socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-ipc-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const endpoint = `ipc://${join(folder, 'engine')}`;
  const engine = await startEngine(endpoint);
  const worker = await startWorker('--engine-endpoint', endpoint);
  await engine.subscribed();
  await engine.send(batchFrames(batch([storeEvent([1])])));
  await eventually(() => published(worker)[0] === 1);
  expect(published(worker)).toEqual({ 0: 1 });
});

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((address) => address?.address === '::1');

test.skipIf(!hasIpv6)('reads from an IPv6 address in brackets', async () => {
  const port = await freePorts(1);
  const endpoint = `tcp://[::1]:${port}`;
  const engine = await EngineStub.start(endpoint, { ipv6: true });
  cleanups.push(() => engine.close());
  const worker = await startWorker('--engine-endpoint', endpoint);
  await engine.subscribed();
  await engine.send(batchFrames(batch([storeEvent([1])])));
  await eventually(() => published(worker)[0] === 1);
  expect(published(worker)).toEqual({ 0: 1 });
});

test('a wildcard to connect to becomes loopback, and the status shows it', async () => {
  const engine = await startEngine('tcp://127.0.0.1:0');
  const port = engine.endpoint.split(':').at(-1);
  const worker = await startWorker('--engine-endpoint', `tcp://*:${port}`);
  await engine.subscribed();
  expect(rank(worker, 0).engine.endpoint).toBe(`tcp://127.0.0.1:${port}`);
});

test('a port scan at a bound engine socket is no engine, and ends none', async () => {
  const port = await freePorts(1);
  const endpoint = `tcp://127.0.0.1:${port}`;
  const worker = await startWorker('--engine-endpoint', endpoint, '--engine-bind');
  const scan = async (): Promise<void> => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 200));
  };
  await scan();
  expect(rank(worker, 0).engine.connected).toBe(false);
  const engine = EngineStub.connect(endpoint);
  cleanups.push(() => engine.close());
  await engine.subscribed();
  await eventually(() => rank(worker, 0).engine.connected);
  await scan();
  expect(rank(worker, 0).engine.connected).toBe(true);
  engine.close();
  await eventually(() => !rank(worker, 0).engine.connected);
});

test('an engine socket that cannot be bound ends the start with the address and what to do', async () => {
  const port = await freePorts(1);
  const blocker = createServer().listen(port, '127.0.0.1');
  await once(blocker, 'listening');
  cleanups.push(() => blocker.close());
  const start = startWorker('--engine-endpoint', `tcp://127.0.0.1:${port}`, '--engine-bind');
  const error = await start.catch((reason: unknown) => reason);
  expect(errorLine(error)).toMatch(
    `KVR_ENGINE_BIND: Cannot bind the engine socket to tcp://127.0.0.1:${port} (Address already in use). Free`,
  );
});
