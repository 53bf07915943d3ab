/** Both engine sockets against publishers of libzmq: what one takes, tells and survives, so does the other. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { XPublisher } from 'zeromq';
import {
  createEngineSocket,
  type EngineSocket,
  type EngineSocketOptions,
} from '../../src/listener/engine-socket.ts';
import type { EngineMessage, FrameFault } from '../../src/listener/frames.ts';
import { ZmqEngineSocket } from '../../src/listener/zmq-engine-socket.ts';
import { ZmtpEngineSocket } from '../../src/listener/zmtp-engine-socket.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function options(
  endpoint: string,
  changes: Partial<EngineSocketOptions> = {},
): EngineSocketOptions {
  return {
    endpoint,
    bind: false,
    topic: '',
    receiveHwm: 1000,
    maxMessageBytes: 1 << 20,
    compat: 'safe',
    onMessage: () => undefined,
    onLink: () => undefined,
    ...changes,
  };
}

describe('The engine socket is', () => {
  test.each([
    ['tcp://127.0.0.1:5557'],
    ['tcp://localhost:1'],
    ['tcp://[::1]:65535'],
    ['ipc:///tmp/engine.sock'],
    ['ipc://engine.sock'],
    ['ipc://*engine.sock'],
  ])('our own for %s', (endpoint) => {
    expect(createEngineSocket(options(endpoint))).toBeInstanceOf(ZmtpEngineSocket);
  });

  test.each([
    ['inproc://engine'],
    ['ipc://@engine'],
    ['ipc://*'],
    ['tcp://eth0;127.0.0.1:5557'],
    ['tcp://127.0.0.1:0'],
    ['tcp://127.0.0.1:65536'],
    ['tcp://*:5557'],
  ])('that of libzmq for %s', async (endpoint) => {
    const socket = createEngineSocket(options(endpoint));
    expect(socket).toBeInstanceOf(ZmqEngineSocket);
    await socket.close();
  });

  test('that of libzmq where it is bound', async () => {
    const socket = createEngineSocket(options('tcp://127.0.0.1:5557', { bind: true }));
    expect(socket).toBeInstanceOf(ZmqEngineSocket);
    await socket.close();
  });
});

interface Heard {
  readonly socket: EngineSocket;
  /** Messages as number:payload, faults, and `on` and `off`, in order. */
  readonly told: string[];
}

const KINDS: Readonly<Record<string, (options: EngineSocketOptions) => EngineSocket>> = {
  zmtp: createEngineSocket,
  libzmq: (given) => new ZmqEngineSocket(given),
};

function number(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

const batch = (value: number, payload = 'p', topic = ''): Buffer[] => [
  Buffer.from(topic),
  number(value),
  Buffer.from(payload),
];

function freeEndpoint(transport: string): () => Promise<string> {
  if (transport === 'tcp') return async () => `tcp://127.0.0.1:${await freePorts(1)}`;
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return () => Promise.resolve(`ipc://${join(folder, 'engine')}`);
}

async function publisher(endpoint: string): Promise<EngineStub> {
  const engine = await EngineStub.start(endpoint);
  onTestFinished(() => engine.close());
  return engine;
}

describe.each([
  ['zmtp', 'tcp'],
  ['zmtp', 'ipc'],
  ['libzmq', 'tcp'],
  ['libzmq', 'ipc'],
])('%s over %s', (kind, transport) => {
  async function listen(
    endpoint: string,
    changes: Partial<EngineSocketOptions> = {},
  ): Promise<Heard> {
    const told: string[] = [];
    const show = (message: EngineMessage | FrameFault): string =>
      typeof message === 'string'
        ? message
        : `${message.sequence}:${Buffer.from(message.payload).toString().slice(0, 20)}`;
    const socket: EngineSocket = (KINDS[kind] ?? createEngineSocket)(
      options(endpoint, {
        onMessage: (message) => told.push(show(message)),
        onLink: () => told.push(socket.isConnected ? 'on' : 'off'),
        ...changes,
      }),
    );
    onTestFinished(() => socket.close());
    await socket.start();
    return { socket, told };
  }

  test('takes the topics with its prefix', async () => {
    const endpoint = await freeEndpoint(transport)();
    const engine = await publisher(endpoint);
    const { told, socket } = await listen(endpoint, { topic: 'kv' });
    await engine.subscribed();
    for (const [index, topic] of ['', 'k', 'kv', 'kvx', 'x'].entries()) {
      await engine.send(batch(index, 'p', topic));
    }
    await engine.send(batch(9, 'end', 'kv'));
    expect(await eventually(() => told.includes('9:end'))).toBe(true);
    expect(told).toEqual(['on', '2:p', '3:p', '9:end']);
    expect([socket.isConnected, socket.connects]).toEqual([true, 1]);
  });

  test('counts the same faults', async () => {
    const endpoint = await freeEndpoint(transport)();
    const engine = await publisher(endpoint);
    const { told } = await listen(endpoint);
    await engine.subscribed();
    const [topic = Buffer.alloc(0)] = batch(0);
    await engine.send([topic]);
    await engine.send([topic, number(1)]);
    await engine.send([...batch(2), Buffer.alloc(0)]);
    await engine.send(Array.from({ length: 40 }, () => Buffer.alloc(300)));
    await engine.send([topic, Buffer.alloc(7), Buffer.alloc(1)]);
    await engine.send([topic, Buffer.alloc(0), Buffer.alloc(0)]);
    await engine.send([topic, Buffer.alloc(8, 0xff), Buffer.alloc(0)]);
    await engine.send(batch(3, ''));
    await engine.send([topic, Buffer.from('0123456789abcdef', 'hex'), Buffer.from('end')]);
    const end = `${0x0123456789abcdefn}:end`;
    expect(await eventually(() => told.includes(end))).toBe(true);
    const faults = [...Array<string>(4).fill('frames'), ...Array<string>(3).fill('sequence')];
    expect(told).toEqual(['on', ...faults, '3:', end]);
  });

  test('comes back to an engine that was away', async () => {
    const endpoint = await freeEndpoint(transport)();
    const { told, socket } = await listen(endpoint);
    for (const [life, payload] of ['first', 'second', 'third'].entries()) {
      const engine = await publisher(endpoint);
      await engine.subscribed();
      await engine.send(batch(life, payload));
      expect(await eventually(() => told.includes(`${life}:${payload}`))).toBe(true);
      engine.close();
      expect(await eventually(() => !socket.isConnected)).toBe(true);
    }
    expect(told).toEqual(['on', '0:first', 'off', 'on', '1:second', 'off', 'on', '2:third', 'off']);
    expect(socket.connects).toBe(3);
  });

  test.each([1, 10, 1000])('loses nothing at a mark of %i messages', async (receiveHwm) => {
    const COUNT = 3000;
    const endpoint = await freeEndpoint(transport)();
    const engine = await publisher(endpoint);
    const { told } = await listen(endpoint, { receiveHwm });
    await engine.subscribed();
    const payload = 'x'.repeat(3000);
    for (let index = 0; index < COUNT; index++) await engine.send(batch(index, payload));
    expect(await eventually(() => told.length > COUNT)).toBe(true);
    const shown = payload.slice(0, 20);
    expect(told).toEqual([
      'on',
      ...Array.from({ length: COUNT }, (_, index) => `${index}:${shown}`),
    ]);
  });

  test('takes what is as large as it may be, and drops the link for more', async () => {
    const endpoint = await freeEndpoint(transport)();
    const engine = await publisher(endpoint);
    const { told } = await listen(endpoint);
    await engine.subscribed();
    await engine.send(batch(0, 'a'.repeat(1 << 20)));
    // What libzmq has not handed out goes with the link.
    expect(await eventually(() => told.length === 2)).toBe(true);
    await engine.send(batch(1, 'b'.repeat((1 << 20) + 1)));
    expect(await eventually(() => told.length === 4)).toBe(true);
    // Subscribed again a moment behind the handshake.
    for (let index = 2; told.length < 5; index++) {
      await engine.send(batch(index, 'c'));
      await pause(20);
    }
    expect(told.slice(0, 4)).toEqual(['on', '0:aaaaaaaaaaaaaaaaaaaa', 'off', 'on']);
    expect(told[4]).toMatch(/^\d+:c$/);
  });

  test('passes on at its end one that takes many reads', async () => {
    const bytes = 24 << 20;
    const endpoint = await freeEndpoint(transport)();
    const engine = await publisher(endpoint);
    const { told, socket } = await listen(endpoint, { maxMessageBytes: bytes });
    await engine.subscribed();
    await engine.send(batch(0, 'a'.repeat(bytes)));
    for (const startMs = performance.now(); performance.now() - startMs < 300; );
    await socket.drain(10_000);
    expect(told).toEqual(['on', '0:aaaaaaaaaaaaaaaaaaaa']);
  });

  test('keeps the link to an engine that wants answers to its heartbeats', async () => {
    const endpoint = await freeEndpoint(transport)();
    const engine = new XPublisher({ linger: 0, heartbeatInterval: 50, heartbeatTimeout: 200 });
    onTestFinished(() => engine.close());
    await engine.bind(endpoint);
    const { told } = await listen(endpoint);
    expect(await eventually(() => told.length > 0)).toBe(true);
    await pause(1000);
    expect(told).toEqual(['on']);
  });

  test('passes on at its end what has arrived, and nothing behind it', async () => {
    const COUNT = 2000;
    const endpoint = await freeEndpoint(transport)();
    const engine = await publisher(endpoint);
    const { told, socket } = await listen(endpoint, { receiveHwm: 100_000 });
    await engine.subscribed();
    for (let index = 0; index < COUNT; index++) await engine.send(batch(index, 'p'));
    // It arrives while nothing here can take it.
    for (const startMs = performance.now(); performance.now() - startMs < 200; );
    expect(told.length).toBeLessThan(COUNT);
    await socket.drain(10_000);
    const drained = told.length;
    await socket.close();
    await engine.send(batch(COUNT));
    engine.close();
    await pause(200);
    expect(told).toHaveLength(drained);
    expect(drained).toBe(COUNT + 1);
  });
});

test('An engine that is bound to a name or to IPv6 is found', async () => {
  for (const host of ['localhost', '[::1]']) {
    const port = await freePorts(1);
    const engine = await EngineStub.start(
      `tcp://${host === '[::1]' ? host : '127.0.0.1'}:${port}`,
      {
        ipv6: host === '[::1]',
      },
    );
    onTestFinished(() => engine.close());
    const socket = createEngineSocket(options(`tcp://${host}:${port}`));
    onTestFinished(() => socket.close());
    await socket.start();
    expect(await eventually(() => socket.isConnected)).toBe(true);
  }
});
