/** Trials of start and stop: signals at any moment, whatever the plane and the engine do. */

import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Subscriber } from 'zeromq';
import { EngineStub } from '../support/engine-stub.ts';
import { type Exit, FaultProcess } from '../support/fault-process.ts';
import { Flood } from '../support/flood.ts';
import { freePorts } from '../support/free-ports.ts';
import { type NatsServerProcess, natsServerAvailable } from '../support/nats-server.ts';
import { natsFlags, startTestServer } from '../support/nats-trial.ts';
import { f, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';

/** What a supervisor is promised. */
const GRACE_MS = 8000;

/** The drain that users have by default, and a shorter one for CI. */
const DRAIN = scaled(['--shutdown-timeout-ms', '1200'], []);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function startEngine(): Promise<EngineStub> {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  return engine;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/** Ports of a plane and of a status page, which a process that is gone leaves to the next one. */
class Addresses {
  readonly #first: number;

  private constructor(first: number) {
    this.#first = first;
  }

  static async free(): Promise<Addresses> {
    return new Addresses(await freePorts(2));
  }

  get plane(): string {
    return `tcp://127.0.0.1:${this.#first}`;
  }

  get flags(): string[] {
    return ['--plane-endpoint', this.plane, '--http', `127.0.0.1:${this.#first + 1}`];
  }

  /** Ports that somebody still listens on. */
  async leftOver(): Promise<number[]> {
    const ports = [this.#first, this.#first + 1];
    const free = await Promise.all(ports.map(isFree));
    return ports.filter((_, index) => !free[index]);
  }
}

function lastMessages(relay: FaultProcess, count: number): unknown[] {
  return relay.logs.slice(-count).map(({ msg }) => msg);
}

test(
  'Z4, S6: SIGTERM under load is a clean exit each time, and leaves no port',
  async () => {
    const exits: Exit[] = [];
    for (let round = 0; round < scaled(3, 50); round++) {
      const addresses = await Addresses.free();
      const engine = await Flood.start({ seconds: 60, messagesPerS: 20_000, sendHwm: 10_000 });
      const relay = await FaultProcess.ready([
        '--engine-endpoint',
        engine.endpoint,
        ...addresses.flags,
        ...DRAIN,
      ]);
      const router = new Subscriber({ linger: 0 });
      onTestFinished(() => router.close());
      router.connect(addresses.plane);
      router.subscribe();
      const flood = engine.send().catch(() => undefined);
      await relay.reaches(({ counters }) => counters.received > 1000);
      const { code, signal, ms } = await relay.terminate();
      engine.kill();
      await flood;
      exits.push({ code, signal });
      expect(ms).toBeLessThan(GRACE_MS);
      expect(lastMessages(relay, 1)).toEqual(['stopped']);
      expect(await addresses.leftOver()).toEqual([]);
    }
    expect(exits).toEqual(exits.map(() => ({ code: 0, signal: null })));
  },
  scaled(40_000, 300_000),
);

test('S6: a signal during the start ends it cleanly, or before Node takes signals as the system does', async () => {
  const engine = await startEngine();
  const attempts = [0, 50, 200, 400].map(async (delayMs) => {
    const addresses = await Addresses.free();
    const relay = new FaultProcess(['--engine-endpoint', engine.endpoint, ...addresses.flags]);
    await pause(delayMs);
    const { code, signal, ms } = await relay.terminate();
    // Until Node runs our first line, SIGTERM does what it does to any process.
    if (signal === 'SIGTERM') expect(relay.output).toBe('');
    else expect([delayMs, code, signal]).toEqual([delayMs, 0, null]);
    expect(ms).toBeLessThan(GRACE_MS);
    expect(await addresses.leftOver()).toEqual([]);
  });
  await Promise.all(attempts);
});

test('S6: SIGINT stops as SIGTERM does', async () => {
  const engine = await startEngine();
  const addresses = await Addresses.free();
  const relay = await FaultProcess.ready([
    '--engine-endpoint',
    engine.endpoint,
    ...addresses.flags,
  ]);
  relay.kill('SIGINT');
  expect(await relay.exited).toEqual({ code: 0, signal: null });
  expect(await addresses.leftOver()).toEqual([]);
});

test('S6: a signal twice at once is one', async () => {
  const engine = await startEngine();
  const addresses = await Addresses.free();
  const relay = await FaultProcess.ready([
    '--engine-endpoint',
    engine.endpoint,
    ...addresses.flags,
  ]);
  relay.kill('SIGTERM');
  relay.kill('SIGINT');
  expect(await relay.exited).toEqual({ code: 0, signal: null });
  expect(await addresses.leftOver()).toEqual([]);
});

test('S6: neither the plane nor a bound engine socket leaves its ipc file behind', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-stop-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [plane, bound] = [join(folder, 'plane'), join(folder, 'engine')];
  const flags = ['--engine-bind', '--engine-endpoint', `ipc://${bound}`];
  const relay = await FaultProcess.started([...flags, '--plane-endpoint', `ipc://${plane}`]);
  const engine = EngineStub.connect(`ipc://${bound}`);
  onTestFinished(() => engine.close());
  await engine.subscribed();
  expect([existsSync(plane), existsSync(bound)]).toEqual([true, true]);
  expect((await relay.terminate()).code).toBe(0);
  expect([existsSync(plane), existsSync(bound)]).toEqual([false, false]);
});

test('S5: the last line is always whole, after a signal and after a wrong setting', async () => {
  const engine = await startEngine();
  const rounds = scaled(3, 20);
  const stopped = Array.from({ length: rounds }, async () => {
    const relay = await FaultProcess.ready([
      '--engine-endpoint',
      engine.endpoint,
      '--plane-endpoint',
      'tcp://127.0.0.1:0',
    ]);
    expect((await relay.terminate()).code).toBe(0);
    expect(relay.output.endsWith('\n')).toBe(true);
    expect(JSON.parse(relay.lines.at(-1) ?? '')).toMatchObject({ level: 'info', msg: 'stopped' });
  });
  await Promise.all(stopped);
  const refused = Array.from({ length: rounds }, async () => {
    const relay = new FaultProcess(['--max-batch-blocks', 'many']);
    expect(await relay.exited).toEqual({ code: 2, signal: null });
    expect(relay.output.endsWith('\n')).toBe(true);
    expect(relay.lines).toHaveLength(1);
    expect(JSON.parse(relay.lines[0] ?? '')).toMatchObject({ level: 'fatal', code: 'KVR_CONFIG' });
  });
  await Promise.all(refused);
}, 120_000);

test('S1: a stop with a router that never reads and a full socket ends in its time', async () => {
  const addresses = await Addresses.free();
  const engine = await Flood.start({ count: 6000, blocks: 100 });
  const relay = await FaultProcess.ready([
    '--engine-endpoint',
    engine.endpoint,
    ...addresses.flags,
  ]);
  const stalled = new Subscriber({ linger: 0, receiveHighWaterMark: 1, receiveBufferSize: 4096 });
  onTestFinished(() => stalled.close());
  const handshake = new Promise<void>((resolve) => {
    stalled.events.on('handshake', () => resolve());
  });
  stalled.subscribe();
  stalled.connect(addresses.plane);
  await handshake;
  await pause(50);
  await engine.send();
  await relay.reaches(({ counters }) => counters.received === 6000);
  const { code, ms } = await relay.terminate();
  expect(code).toBe(0);
  expect(ms).toBeLessThan(5000);
  expect(await addresses.leftOver()).toEqual([]);
});

describe.skipIf(!natsServerAvailable())('with NATS', () => {
  async function startRelay(
    server: NatsServerProcess,
    ...flags: string[]
  ): Promise<[FaultProcess, EngineStub]> {
    const engine = await startEngine();
    const relay = await FaultProcess.started([...natsFlags(engine, server), ...flags]);
    await engine.subscribed();
    return [relay, engine];
  }

  async function sendStores(engine: EngineStub, count: number): Promise<void> {
    for (let sequence = 0; sequence < count; sequence++) {
      await engine.send(f(sequence, [St(101 + sequence)]));
    }
  }

  test('S1: with a server frozen under way and a full outbox, a stop ends in its time and tells what is left', async () => {
    const server = await startTestServer();
    const [relay, engine] = await startRelay(server, '--outbox-bytes', '65536', ...DRAIN);
    await relay.reaches((_, { plane }) => plane.connected);
    server.kill('SIGSTOP');
    await sendStores(engine, 1000);
    await relay.reaches(({ counters }) => counters.received === 1000);
    const { outbox_messages } = (await relay.status()).plane;
    const { code, ms } = await relay.terminate();
    expect([code, ms < GRACE_MS]).toEqual([0, true]);
    const last = relay.logs.slice(-4);
    expect(last.find((line) => line.outboxMessages !== undefined)).toMatchObject({
      outboxMessages: outbox_messages,
    });
    expect(last.at(-1)).toMatchObject({ msg: 'stopped' });
  });

  test('S1: with a server frozen from the start, a stop ends in its time and tells what is left', async () => {
    const server = await startTestServer();
    server.kill('SIGSTOP');
    const [relay, engine] = await startRelay(server, ...DRAIN);
    await sendStores(engine, 100);
    await relay.reaches(({ counters }) => counters.received === 100);
    // Into the middle of an attempt to connect.
    await pause(500);
    const { outbox_messages: outboxMessages } = (await relay.status()).plane;
    expect(outboxMessages).toBeGreaterThan(0);
    const { code, ms } = await relay.terminate();
    expect([code, ms < GRACE_MS]).toEqual([0, true]);
    expect(relay.logs.slice(-4)).toContainEqual(expect.objectContaining({ outboxMessages }));
  });

  test('S1: with a server that is gone, a stop ends in its time and tells what is left', async () => {
    const server = await startTestServer();
    const [relay, engine] = await startRelay(server, ...DRAIN);
    await relay.reaches((_, { plane }) => plane.connected);
    server.kill('SIGKILL');
    await server.exited;
    await relay.reaches((_, { plane }) => !plane.connected);
    await sendStores(engine, 100);
    await relay.reaches(({ counters }) => counters.published_events === 100);
    const { outbox_messages: outboxMessages } = (await relay.status()).plane;
    expect(outboxMessages).toBeGreaterThan(0);
    const { code, ms } = await relay.terminate();
    expect([code, ms < GRACE_MS]).toEqual([0, true]);
    expect(relay.logs.slice(-4)).toContainEqual(expect.objectContaining({ outboxMessages }));
  });

  test('S6: a second signal, more than an echo after the first, ends a slow stop at once', async () => {
    const server = await startTestServer();
    const [relay, engine] = await startRelay(server, '--http', '127.0.0.1:0');
    await relay.reaches((_, { plane }) => plane.connected);
    server.kill('SIGSTOP');
    await sendStores(engine, 10);
    await relay.reaches(({ counters }) => counters.received === 10);
    const port = Number(new URL(relay.httpUrl).port);
    relay.kill('SIGTERM');
    await pause(500);
    expect(relay.hasEnded).toBe(false);
    const startMs = performance.now();
    relay.kill('SIGTERM');
    expect(await relay.exited).toEqual({ code: 1, signal: null });
    expect(performance.now() - startMs).toBeLessThan(1000);
    const probe = connect(port, '127.0.0.1');
    await expect(once(probe, 'connect')).rejects.toThrow(/ECONNREFUSED/);
  });
});
