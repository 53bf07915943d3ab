/** The subscriber against peers that no publisher of libzmq is: hostile, broken, old, frozen. */

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Push } from 'zeromq';
import type { WireMessage } from '../../src/connections/zmtp/frame-reader.ts';
import { ZmtpLink } from '../../src/connections/zmtp/zmtp-link.ts';
import {
  type SubscriberOptions,
  ZmtpSubscriber,
} from '../../src/connections/zmtp/zmtp-subscriber.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { Forwarder } from '../support/forwarder.ts';
import { eventually } from '../support/plane-collector.ts';
import {
  framesOf,
  wireCommand,
  wireGreeting,
  wireMessage,
  wireReady,
} from '../support/zmtp-frames.ts';
import { ZmtpPeer } from '../support/zmtp-peer.ts';

const TIMES = { handshakeMs: 30_000, heartbeatIntervalMs: 5000, heartbeatTimeoutMs: 8000 };
const QUICK = { handshakeMs: 300, heartbeatIntervalMs: 100, heartbeatTimeoutMs: 300 };
const OPENING = Buffer.concat([wireGreeting(), wireReady('PUB')]);
const BATCH = wireMessage(Buffer.alloc(0), Buffer.from('12345678'), Buffer.from('batch'));

interface Heard {
  readonly subscriber: ZmtpSubscriber;
  /** Messages as their frames joined by `|`, and changes of the link, in order. */
  readonly told: (string | boolean)[];
}

function subscribe(port: number, options: Partial<SubscriberOptions> = {}): Heard {
  const told: (string | boolean)[] = [];
  const subscriber = new ZmtpSubscriber({
    address: { host: '127.0.0.1', port, family: 4 },
    topic: '',
    receiveHwm: 1000,
    maxMessageBytes: 1 << 20,
    onMessage: (message) => told.push(framesOf(message).join('|')) > 0,
    onLink: (isLinked) => told.push(isLinked),
    ...options,
  });
  onTestFinished(() => subscriber.close());
  subscriber.start();
  return { subscriber, told };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('A peer is never linked, and tried again', () => {
  const behindGreeting = (bytes: Buffer): Buffer => Buffer.concat([wireGreeting(), bytes]);
  const openings: Readonly<Record<string, Buffer>> = {
    'speaks HTTP': Buffer.from('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'),
    'speaks ZMTP 1': Buffer.from([1, 0]),
    'speaks ZMTP 2': Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 1, 0, 0]),
    'wants PLAIN': wireGreeting(1, 'PLAIN'),
    'wants CURVE': wireGreeting(1, 'CURVE'),
    'is a PULL socket': behindGreeting(wireReady('PULL')),
    'names no socket type': behindGreeting(wireCommand('READY')),
    'has an error to tell': behindGreeting(wireCommand('ERROR')),
    'sends a READY that is cut off': behindGreeting(wireCommand('READY', Buffer.from([11, 83]))),
    'sends one that is cut off in a value': behindGreeting(
      wireCommand('READY', Buffer.from('\x0bSocket-Type\0\0\0\x04PUB')),
    ),
    'sends a message first': behindGreeting(BATCH),
    'sends rubbish': behindGreeting(Buffer.alloc(100, 0xee)),
  };

  test('that does not open as a publisher does', async () => {
    const outcomes = await Promise.all(
      Object.values(openings).map(async (bytes) => {
        const peer = await ZmtpPeer.start((socket) => socket.write(bytes));
        const { told, subscriber } = subscribe(peer.port);
        await eventually(() => peer.sockets.length >= 2);
        const [first = 0, second = 0] = peer.linkedAtMs;
        return { told, isLinked: subscriber.isLinked, waits: second - first > 900 };
      }),
    );
    const refused = { told: [], isLinked: false, waits: true };
    const names = Object.keys(openings);
    expect(Object.fromEntries(outcomes.map((outcome, at) => [names[at], outcome]))).toEqual(
      Object.fromEntries(names.map((name) => [name, refused])),
    );
  });

  test('that is silent', async () => {
    const peer = await ZmtpPeer.start();
    const { told } = subscribe(peer.port, { times: { ...TIMES, handshakeMs: 100 } });
    expect(await eventually(() => peer.sockets.length >= 3)).toBe(true);
    expect(told).toEqual([]);
  });

  test('that is a PUSH socket of libzmq', async () => {
    const push = new Push({ linger: 0 });
    onTestFinished(() => push.close());
    await push.bind('tcp://127.0.0.1:0');
    const { told } = subscribe(Number(push.lastEndpoint?.split(':').pop()));
    await pause(500);
    expect(told).toEqual([]);
  });
});

test('Retries come at 100 ms and then further and further apart, and anew behind a handshake', async () => {
  const peer = await ZmtpPeer.start((socket) => {
    if (peer.sockets.length === 5) socket.end(OPENING);
    else socket.destroy();
  });
  subscribe(peer.port);
  expect(await eventually(() => peer.sockets.length >= 6)).toBe(true);
  const gaps = peer.linkedAtMs.slice(1).map((at, index) => at - (peer.linkedAtMs[index] ?? 0));
  for (const [index, gap] of gaps.slice(0, 4).entries()) {
    expect(gap).toBeGreaterThan(90 * 2 ** index);
  }
  expect(gaps[0]).toBeLessThan(800);
  expect(gaps[4]).toBeLessThan(1000);
});

test.each([
  ['3.0', 0, wireMessage(Buffer.from('\x01kv'))],
  ['3.1', 1, wireCommand('SUBSCRIBE', Buffer.from('kv'))],
])('A peer of ZMTP %s gets the subscription in its own form', async (_, minor, subscription) => {
  const opening = Buffer.concat([wireGreeting(minor), wireReady('XPUB')]);
  const peer = await ZmtpPeer.start((socket) => socket.write(opening));
  subscribe(peer.port, { topic: 'kv', times: { ...QUICK, handshakeMs: 30_000 } });
  const before = 64 + wireReady('SUB').length;
  expect(await eventually(() => peer.received().length >= before + subscription.length)).toBe(true);
  const received = peer.received().subarray(before);
  expect(received.subarray(0, subscription.length)).toEqual(subscription);
  await pause(250);
  // 3.0 knows no PING.
  const pings = peer.received().subarray(before + subscription.length);
  expect(pings.includes('PING')).toBe(minor === 1);
});

test('The subscription does not wait for an acknowledgement of what went before it', async () => {
  const waits: number[] = [];
  for (let life = 0; life < 5; life++) {
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    let linkedAtMs = 0;
    subscribe(Number(engine.endpoint.split(':').pop()), {
      onLink: () => {
        linkedAtMs = performance.now();
      },
    });
    await engine.subscribed();
    waits.push(performance.now() - linkedAtMs);
  }
  // Linux holds an acknowledgement back for 40 ms.
  expect(Math.min(...waits)).toBeLessThan(30);
});

test('Messages of other topics are passed over, should a peer send any', async () => {
  const messages = ['kv', 'kv-events', 'other', 'k', ''].map((topic) =>
    wireMessage(Buffer.from(topic), Buffer.from('number')),
  );
  const bytes = Buffer.concat([OPENING, ...messages]);
  const peer = await ZmtpPeer.start((socket) => socket.write(bytes));
  const { told } = subscribe(peer.port, { topic: 'kv' });
  expect(await eventually(() => told.length >= 3)).toBe(true);
  await pause(50);
  expect(told).toEqual([true, 'kv|number', 'kv-events|number']);
});

test('A message that came in part goes with its link, what came before it is passed on first', async () => {
  const bytes = Buffer.concat([OPENING, BATCH, BATCH.subarray(0, -1)]);
  const peer = await ZmtpPeer.start((socket) => socket.end(bytes));
  const { told } = subscribe(peer.port);
  expect(await eventually(() => told.length >= 6)).toBe(true);
  const link = [true, '|12345678|batch', false];
  expect(told.slice(0, 6)).toEqual([...link, ...link]);
});

test.each([
  ['breaks the protocol', Buffer.of(0xff, 0xff)],
  ['sends more than it may', Buffer.from([2, 0, 0, 0, 0, 0, 0x20, 0, 0])],
  ['sends a command without end', Buffer.from([6, 0, 0, 0, 0, 0, 0x10, 0, 0])],
])('A link whose peer %s ends, and comes back after a second', async (_, bytes) => {
  const peer = await ZmtpPeer.start((socket) =>
    socket.write(Buffer.concat([OPENING, BATCH, bytes])),
  );
  const { told } = subscribe(peer.port);
  expect(await eventually(() => told.length >= 5)).toBe(true);
  expect(told.slice(0, 5)).toEqual([true, '|12345678|batch', false, true, '|12345678|batch']);
  const [first = 0, second = 0] = peer.linkedAtMs;
  expect(second - first).toBeGreaterThan(900);
});

test('PING is answered with its context, 16 bytes of it at most', async () => {
  const context = Buffer.from('0123456789abcdefXYZ');
  const ping = wireCommand('PING', Buffer.concat([Buffer.from([0, 100]), context]));
  const bytes = Buffer.concat([OPENING, wireCommand('SOMETHING'), ping, BATCH]);
  const peer = await ZmtpPeer.start((socket) => socket.write(bytes));
  const { told } = subscribe(peer.port);
  const pong = wireCommand('PONG', context.subarray(0, 16));
  expect(await eventually(() => peer.received().includes(pong))).toBe(true);
  expect(told).toEqual([true, '|12345678|batch']);
});

test('A peer that asks on and on and reads nothing loses its link', async () => {
  const pings = Buffer.concat(
    Array.from({ length: 20_000 }, () => wireCommand('PING', Buffer.alloc(18))),
  );
  const send = (socket: Socket): void => {
    socket.pause();
    const more = (): void => void (socket.writable && socket.write(pings, () => more()));
    socket.write(OPENING, () => more());
  };
  const peer = await ZmtpPeer.start(send);
  const { told } = subscribe(peer.port);
  expect(await eventually(() => told.includes(false), 20_000)).toBe(true);
});

test('A link that freezes is given up, one that is only quiet is not', async () => {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const forwarder = await Forwarder.to(Number(engine.endpoint.split(':').pop()));
  const { told } = subscribe(forwarder.port, { times: { ...QUICK, handshakeMs: 800 } });
  await engine.subscribed();
  await pause(1000);
  expect(told).toEqual([true]);
  forwarder.freeze();
  expect(await eventually(() => told.length === 2, 5000)).toBe(true);
  forwarder.thaw();
  expect(await eventually(() => told.length === 3)).toBe(true);
  expect(told).toEqual([true, false, true]);
});

test('A link reads nothing while it may not, its peer has to wait, and nothing is lost', async () => {
  const COUNT = 2000;
  const payload = Buffer.alloc(16_384);
  const peer = await ZmtpPeer.start((socket) => {
    socket.write(OPENING);
    for (let index = 0; index < COUNT; index++) {
      socket.write(wireMessage(Buffer.from(String(index)), payload));
    }
  });
  let room = 10;
  let isReady = false;
  const topics: string[] = [];
  const link = new ZmtpLink({
    address: { host: '127.0.0.1', port: peer.port, family: 4 },
    topic: Buffer.alloc(0),
    maxMessageBytes: 1 << 20,
    times: { ...QUICK, handshakeMs: 30_000 },
    canTake: () => !isReady || room > 0,
    onReady: () => {
      isReady = true;
    },
    onMessage: (message) => {
      room--;
      topics.push(framesOf(message)[0] ?? '');
    },
    onEnd: () => topics.push('end'),
  });
  onTestFinished(() => link.close());
  expect(await eventually(() => topics.length === 10)).toBe(true);
  // Longer than a heartbeat: what is not read is no silence.
  await pause(1000);
  expect(topics).toHaveLength(10);
  expect(peer.sockets[0]?.writableLength).toBeGreaterThan(1 << 20);
  while (topics.length < COUNT) {
    room = 100;
    const before = topics.length;
    link.resume();
    expect(await eventually(() => topics.length > before)).toBe(true);
    await pause(1);
  }
  expect(topics).toEqual(Array.from({ length: COUNT }, (_, index) => String(index)));
});

/** What is read at once, at most. */
const SLAB_BYTES = (1 << 18) + (1 << 12);

/** Of what a peer has sent, more than the kernel and a reader's slab hold. */
const ON_THE_WAY_BYTES = 20 << 20;

test.each([
  ['messages', { count: 1000, bytes: 1 << 16, receiveHwm: 10, waitingBytes: 10 << 16 }],
  ['bytes', { count: 240, bytes: 1 << 20, receiveHwm: 1000, waitingBytes: 16 << 20 }],
])('What waits is bounded by %s: the peer has to wait, and nothing is lost', async (_, given) => {
  const { count, bytes, receiveHwm, waitingBytes } = given;
  const payload = Buffer.alloc(bytes);
  let sent = 0;
  const peer = await ZmtpPeer.start((socket) => {
    const more = (): void => {
      while (sent < count && socket.writableLength < 8 << 20) {
        socket.write(wireMessage(Buffer.from(String(sent++)), payload), more);
      }
    };
    socket.write(OPENING, more);
  });
  let mostBytes = 0;
  const topics: string[] = [];
  subscribe(peer.port, {
    receiveHwm,
    maxMessageBytes: bytes,
    onMessage: (message) => {
      topics.push(framesOf(message)[0] ?? '');
      mostBytes = Math.max(mostBytes, (sent - topics.length) * bytes);
      // A turn for each: slower than it is read.
      for (const startMs = performance.now(); performance.now() - startMs < 5; );
      return false;
    },
  });
  expect(await eventually(() => topics.length === count, 25_000)).toBe(true);
  expect(topics).toEqual(Array.from({ length: count }, (_unused, index) => String(index)));
  expect(mostBytes).toBeLessThan(waitingBytes + ON_THE_WAY_BYTES);
});

test('A message is whole until the next one is passed on, whatever is read meanwhile', async () => {
  const pong = wireCommand('PONG', Buffer.alloc(100));
  const peer = await ZmtpPeer.start((socket) => {
    socket.write(OPENING);
    // What is no message: beyond the small slab of the beginning, and then several slabs full.
    socket.write(Buffer.concat(Array.from({ length: 500 }, () => pong)));
    socket.write(wireMessage(Buffer.from('first'), Buffer.alloc(3000, 120)));
    socket.write(Buffer.concat(Array.from({ length: 30_000 }, () => pong)));
    setTimeout(() => socket.write(BATCH), 100);
  });
  const messages: WireMessage[] = [];
  let first: string[] = [];
  subscribe(peer.port, {
    onMessage: (message) => {
      if (messages.push(message) === 2) first = framesOf(messages[0] as WireMessage);
      return true;
    },
  });
  expect(await eventually(() => messages.length === 2)).toBe(true);
  expect(first).toEqual(['first', 'x'.repeat(3000)]);
  expect(messages[1]?.slab).not.toBe(messages[0]?.slab);
});

test('A turn ends after a while, and what waits keeps its order', async () => {
  const COUNT = 300;
  const bytes = Buffer.concat(
    Array.from({ length: COUNT }, (_, index) => wireMessage(Buffer.from(String(index)))),
  );
  const peer = await ZmtpPeer.start((socket) => socket.end(Buffer.concat([OPENING, bytes])));
  const told: (string | boolean)[] = [];
  const turns = new Map<number, number>();
  let turn = 0;
  let immediate = setImmediate(function next() {
    turn++;
    immediate = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(immediate));
  subscribe(peer.port, {
    onMessage: (message) => {
      told.push(framesOf(message)[0] ?? '');
      turns.set(turn, (turns.get(turn) ?? 0) + 1);
      return false;
    },
    onLink: (isLinked) => told.push(isLinked),
  });
  expect(await eventually(() => told.includes(false))).toBe(true);
  const numbers = Array.from({ length: COUNT }, (_, index) => String(index));
  expect(told.slice(0, COUNT + 2)).toEqual([true, ...numbers, false]);
  expect(Math.max(...turns.values())).toBeLessThanOrEqual(64);
});

/** A publisher on a thread of its own, which sends `OPENING` and then `chunk` for ever. */
async function floodOf(chunk: Buffer): Promise<number> {
  const program = `
    const { createServer } = require('node:net');
    const { parentPort, workerData: { opening, chunk } } = require('node:worker_threads');
    const server = createServer((socket) => {
      const more = () => socket.writable && socket.write(chunk, more);
      socket.on('error', () => undefined);
      socket.resume();
      socket.write(opening, more);
    });
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(program, { eval: true, workerData: { opening: OPENING, chunk } });
  onTestFinished(async () => void (await worker.terminate()));
  const [port] = await once(worker, 'message');
  return port as number;
}

test.each([
  ['commands', wireCommand('')],
  ['messages of other topics', wireMessage(Buffer.from('other'))],
])('What is not passed on ends a turn as well: %s', async (_, bytes) => {
  const wholeBytes = Math.floor((1 << 20) / bytes.length) * bytes.length;
  const port = await floodOf(Buffer.alloc(wholeBytes, bytes));
  let turn = 0;
  let immediate = setImmediate(function next() {
    turn++;
    immediate = setImmediate(next);
  });
  const steps = new Map<number, number>();
  const link = new ZmtpLink({
    address: { host: '127.0.0.1', port, family: 4 },
    topic: Buffer.from('kv'),
    maxMessageBytes: 1 << 20,
    times: TIMES,
    canTake: () => {
      steps.set(turn, (steps.get(turn) ?? 0) + 1);
      return true;
    },
    onReady: () => undefined,
    onMessage: () => undefined,
    onEnd: () => undefined,
  });
  onTestFinished(() => {
    clearImmediate(immediate);
    link.close();
  });
  await pause(2000);
  const slabs = Math.max(...steps.values()) / (SLAB_BYTES / bytes.length);
  expect(slabs).toBeGreaterThan(0.5);
  // As many as TURN_MS have time for; libuv alone would go on to 32.
  expect(slabs).toBeLessThan(16);
});
