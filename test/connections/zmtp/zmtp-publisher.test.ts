/** The publisher against subscribers that libzmq has none of: hostile, broken, old, stalled; and against brokers that go. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { Subscriber } from 'zeromq';
import { Parcel } from '../../../src/connections/zmtp/parcel.ts';
import {
  ZmtpPublisher,
  type ZmtpPublisherOptions,
} from '../../../src/connections/zmtp/zmtp-publisher.ts';
import { MessageSlab } from '../../../src/protocol/message-slab.ts';
import { eventually } from '../../support/plane-collector.ts';
import { RawSubscriber, subscribeTo } from '../../support/raw-subscriber.ts';
import {
  wireCommand,
  wireFrame,
  wireGreeting,
  wireMessage,
  wireReady,
} from '../../support/zmtp-frames.ts';
import { ZmtpPeer } from '../../support/zmtp-peer.ts';

const TOPIC = 'kv-events';
const BOUNDS = { messages: 1000, bytes: 64 << 20 };

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function newPublisher(options: Partial<ZmtpPublisherOptions> = {}): ZmtpPublisher {
  const publisher = new ZmtpPublisher({
    topic: TOPIC,
    bounds: BOUNDS,
    maxPeers: 100,
    onPeers: () => undefined,
    onLost: () => undefined,
    onRefused: () => undefined,
    ...options,
  });
  onTestFinished(async () => {
    await publisher.close(0);
  });
  return publisher;
}

async function start(
  options: Partial<ZmtpPublisherOptions> = {},
): Promise<{ publisher: ZmtpPublisher; endpoint: string }> {
  const publisher = newPublisher(options);
  return { publisher, endpoint: await publisher.bind('tcp://127.0.0.1:0') };
}

/** Sends a message of the topic and this body; returns how many subscribers lost it. */
function send(
  publisher: ZmtpPublisher,
  body: string | Buffer,
  slab: MessageSlab | null = null,
): number {
  const parcel = new Parcel();
  parcel.add([wireMessage(Buffer.from(TOPIC), Buffer.from(body))], slab);
  const lost = publisher.send(parcel);
  parcel.letGo();
  publisher.flush();
  return lost;
}

const bodies = ({ messages }: RawSubscriber): (string | undefined)[] =>
  messages.map(([, body]) => body);

/** A second one, by which it shows that the publisher has read what was said before. */
async function settled(subscriber: RawSubscriber, count = 1): Promise<void> {
  subscriber.say(wireCommand('PING', Buffer.from([0, 0])));
  expect(await eventually(() => subscriber.commands.length > count)).toBe(true);
}

/** One that the publisher serves. */
async function served(endpoint: string, ...topics: string[]): Promise<RawSubscriber> {
  const subscriber = await RawSubscriber.subscribed(endpoint, ...topics);
  await settled(subscriber);
  return subscriber;
}

describe('A subscriber', () => {
  test('whose bytes come one by one is served as any other', async () => {
    const { publisher, endpoint } = await start();
    const subscriber = await RawSubscriber.connect(endpoint);
    subscriber.socket.setNoDelay(true);
    const opening = Buffer.concat([wireGreeting(), wireReady('SUB'), subscribeTo('kv')]);
    for (const byte of opening) {
      subscriber.say(Buffer.of(byte));
      await pause(1);
    }
    await settled(subscriber);
    send(publisher, 'one');
    expect(await eventually(() => subscriber.messages.length === 1)).toBe(true);
    expect(subscriber.messages).toEqual([[TOPIC, 'one']]);
    expect([publisher.peers, publisher.connects, publisher.disconnects]).toEqual([1, 1, 0]);
  });

  test.each([
    ['of 3.1', subscribeTo('kv-'), wireCommand('CANCEL', Buffer.from('kv-'))],
    ['of 3.0', wireMessage(Buffer.from('\x01kv-')), wireMessage(Buffer.from('\x00kv-'))],
  ])('%s gets what it asks for, until it says that it wants no more', async (_name, on, off) => {
    const { publisher, endpoint } = await start();
    const subscriber = await served(endpoint);
    send(publisher, 'before');
    subscriber.say(on, on, subscribeTo('other'), subscribeTo('kv-events-and-more'));
    await settled(subscriber, 2);
    send(publisher, 'meanwhile');
    subscriber.say(off);
    await settled(subscriber, 3);
    send(publisher, 'behind');
    await settled(subscriber, 4);
    expect(bodies(subscriber)).toEqual(['meanwhile']);
  });

  test('with two beginnings of the topic keeps the other when it gives one up', async () => {
    const { publisher, endpoint } = await start();
    const subscriber = await RawSubscriber.subscribed(endpoint, '', TOPIC);
    subscriber.say(wireCommand('CANCEL', Buffer.from(TOPIC)));
    await settled(subscriber);
    send(publisher, 'one');
    await settled(subscriber, 2);
    expect(bodies(subscriber)).toEqual(['one']);
  });

  test('that asks for more topics than anybody has costs no memory for them', async () => {
    const { publisher, endpoint } = await start();
    const subscriber = await RawSubscriber.subscribed(endpoint, TOPIC);
    const many = Array.from({ length: 2000 }, (_, index) => subscribeTo(`x${index}`));
    const before = process.memoryUsage().rss;
    for (let round = 0; round < 20; round++) subscriber.say(...many);
    await settled(subscriber);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20);
    send(publisher, 'one');
    await settled(subscriber, 2);
    expect(bodies(subscriber)).toEqual(['one']);
  });

  test('has its PING answered with what it said, between messages', async () => {
    const { publisher, endpoint } = await start();
    const subscriber = await served(endpoint, TOPIC);
    subscriber.say(wireCommand('PING', Buffer.from('\0\0context')));
    for (let index = 0; index < 10; index++) send(publisher, String(index));
    expect(await eventually(() => subscriber.messages.length === 10)).toBe(true);
    await settled(subscriber, 3);
    expect(subscriber.commands.slice(1)).toEqual(['PONG', 'PONGcontext', 'PONG']);
  });

  const opening = Buffer.concat([wireGreeting(), wireReady('SUB')]);
  test.each<[string, Buffer]>([
    ['speaks HTTP', Buffer.from('GET /metrics HTTP/1.1\r\n\r\n')],
    ['speaks ZMTP 2', Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 2, 0, 0])],
    ['wants a password', wireGreeting(1, 'PLAIN')],
    ['is a publisher', Buffer.concat([wireGreeting(), wireReady('PUB')])],
    ['has no type', Buffer.concat([wireGreeting(), wireCommand('READY')])],
    ['sends an error', Buffer.concat([wireGreeting(), wireCommand('ERROR', Buffer.from('\0'))])],
    ['sends a message first', Buffer.concat([wireGreeting(), wireMessage(Buffer.from('\x01kv'))])],
    ['uses flags that there are not', Buffer.concat([opening, Buffer.of(8, 0)])],
    ['has a command of many bytes', Buffer.concat([opening, subscribeTo('x'.repeat(9000))])],
    ['has a message of many bytes', Buffer.concat([opening, wireFrame(Buffer.alloc(20_000))])],
    ['announces 4 GiB', Buffer.concat([opening, Buffer.from([2, 0, 0, 0, 1, 0, 0, 0, 0])])],
  ])('that %s loses its link, and nobody else does', async (_name, bytes) => {
    const { publisher, endpoint } = await start();
    const healthy = await served(endpoint, TOPIC);
    const broken = await RawSubscriber.connect(endpoint);
    broken.say(bytes);
    expect(await eventually(() => broken.isClosed)).toBe(true);
    send(publisher, 'one');
    expect(await eventually(() => healthy.messages.length === 1)).toBe(true);
    expect(publisher.peers).toBe(1);
  });

  test('that comes when there are as many as may be is sent away, and its place is free again later', async () => {
    let refused = 0;
    const { publisher, endpoint } = await start({ maxPeers: 2, onRefused: () => refused++ });
    const first = await RawSubscriber.subscribed(endpoint, TOPIC);
    const silent = await RawSubscriber.connect(endpoint);
    await settled(first);
    const third = await RawSubscriber.connect(endpoint);
    expect(await eventually(() => third.isClosed && refused === 1)).toBe(true);
    silent.socket.destroy();
    await pause(50);
    await served(endpoint, TOPIC);
    expect([publisher.peers, publisher.refusals, refused]).toEqual([2, 1, 1]);
  });

  test('that goes in the middle of whatever leaves nothing behind', async () => {
    const { publisher, endpoint } = await start();
    const slab = MessageSlab.ofOne(1);
    for (let cut = 0; cut < 12; cut++) {
      const subscriber = await served(endpoint, TOPIC);
      subscriber.socket.pause();
      for (let index = 0; index < 40; index++) {
        slab.messages++;
        send(publisher, Buffer.alloc(1 << 17), slab);
      }
      if (cut % 2 === 0) subscriber.socket.resetAndDestroy();
      else subscriber.socket.destroy();
      expect(await eventually(() => publisher.peers === 0)).toBe(true);
    }
    expect(slab.messages).toBe(0);
    expect(publisher.disconnects).toBe(12);
  });
});

describe('A subscriber that does not read', () => {
  /** So large that the kernel's buffers hold few of them. */
  const BODY_BYTES = 1 << 16;

  function numbered(slab: MessageSlab, number: number): Buffer {
    slab.buffer.fill(number % 251);
    slab.buffer.writeUInt32BE(number);
    return slab.buffer;
  }

  test('loses what its queue has no room for, each message counted, and the rest comes whole', async () => {
    const { publisher, endpoint } = await start({ bounds: { messages: 100, bytes: 64 << 20 } });
    const healthy = await served(endpoint, TOPIC);
    const stalled = await served(endpoint, TOPIC);
    stalled.socket.pause();
    let lost = 0;
    // Memory is used again as soon as it has been given back, which shows where it was given back too early.
    const free: MessageSlab[] = [];
    const slabs: MessageSlab[] = [];
    const count = 600;
    for (let number = 0; number < count; number++) {
      free.push(...slabs.splice(0).filter((slab) => slab.messages === 0 || !slabs.push(slab)));
      const slab = free.pop() ?? MessageSlab.ofOne(BODY_BYTES);
      slab.messages++;
      slabs.push(slab);
      const parcel = new Parcel();
      const head = Buffer.alloc(9);
      head[0] = 2;
      head.writeUInt32BE(BODY_BYTES, 5);
      parcel.add(
        [wireFrame(Buffer.from(TOPIC), { isMore: true }), head, numbered(slab, number)],
        slab,
      );
      lost += publisher.send(parcel);
      parcel.letGo();
      publisher.flush();
      if (number % 20 === 19) await eventually(() => healthy.messages.length === number + 1);
    }
    expect(healthy.messages.length).toBe(count);
    expect(lost).toBeGreaterThan(0);
    stalled.socket.resume();
    expect(await eventually(() => stalled.messages.length + lost === count)).toBe(true);
    for (const { messages } of [healthy, stalled]) {
      const numbers = messages.map(([, body = '']) => Buffer.from(body, 'latin1').readUInt32BE());
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
      for (const [at, [, body = '']] of messages.entries()) {
        const expected = Buffer.alloc(BODY_BYTES, (numbers[at] ?? 0) % 251);
        expected.writeUInt32BE(numbers[at] ?? 0);
        expect(expected.equals(Buffer.from(body, 'latin1'))).toBe(true);
      }
    }
    // One hole, and no more behind it.
    send(publisher, 'last');
    expect(await eventually(() => stalled.messages.at(-1)?.[1] === 'last')).toBe(true);
    expect(slabs.every(({ messages }) => messages === 0)).toBe(true);
  });

  test('and sends PINGs all the time has one answered, and takes no time from others', async () => {
    const { publisher, endpoint } = await start();
    const healthy = await served(endpoint, TOPIC);
    const rude = await served(endpoint, TOPIC);
    rude.socket.pause();
    for (let index = 0; index < 100; index++) send(publisher, Buffer.alloc(1 << 17));
    const pings = Buffer.concat(
      Array.from({ length: 20_000 }, () => wireCommand('PING', Buffer.alloc(2))),
    );
    const before = process.memoryUsage().rss;
    const started = performance.now();
    for (let index = 0; index < 40; index++) rude.say(pings);
    const worst: number[] = [];
    while (performance.now() - started < 500) {
      const at = performance.now();
      await pause(1);
      worst.push(performance.now() - at);
    }
    expect(Math.max(...worst.slice(20))).toBeLessThan(100);
    expect(process.memoryUsage().rss - before).toBeLessThan(128 << 20);
    expect(await eventually(() => healthy.messages.length === 100)).toBe(true);
    rude.socket.resume();
    expect(await eventually(() => rude.messages.length === 100)).toBe(true);
    expect(rude.commands.length).toBeLessThan(10_000);
  });
});

test('Subscribers that flood, however many, take little of the event loop together, and delay nobody', async () => {
  const { publisher, endpoint } = await start();
  const flood = Buffer.alloc(1 << 20);
  const floods = await Promise.all(
    Array.from({ length: 50 }, () => RawSubscriber.subscribed(endpoint, TOPIC)),
  );
  for (const one of floods) await settled(one);
  for (const one of floods) one.say(flood);
  const startMs = performance.now();
  const turnsMs: number[] = [];
  while (performance.now() - startMs < 1000) {
    const beforeMs = performance.now();
    await pause(1);
    turnsMs.push(performance.now() - beforeMs);
  }
  // Some of what is slow is the test's own sending.
  expect(turnsMs.sort((a, b) => a - b)[Math.floor(turnsMs.length * 0.9)]).toBeLessThan(20);
  const newcomer = await served(endpoint, TOPIC);
  send(publisher, 'one');
  expect(await eventually(() => newcomer.messages.length === 1)).toBe(true);
});

describe('At its end', () => {
  test('a publisher sends what waits, and says goodbye', async () => {
    const { publisher, endpoint } = await start();
    const slow = await served(endpoint, TOPIC);
    slow.socket.pause();
    for (let index = 0; index < 200; index++) send(publisher, Buffer.alloc(1 << 16));
    setTimeout(() => slow.socket.resume(), 100);
    expect(await publisher.close(5000)).toBe(0);
    expect(await eventually(() => slow.isClosed)).toBe(true);
    expect(slow.messages.length).toBe(200);
  });

  test('it waits no longer than it may for one that does not read', async () => {
    const { publisher, endpoint } = await start();
    const stalled = await served(endpoint, TOPIC);
    stalled.socket.pause();
    for (let index = 0; index < 200; index++) send(publisher, Buffer.alloc(1 << 16));
    const startMs = performance.now();
    const lost = await publisher.close(200);
    expect(performance.now() - startMs).toBeLessThan(1500);
    stalled.socket.resume();
    expect(await eventually(() => stalled.isClosed)).toBe(true);
    // Of those that a socket had when it was closed a part may have left.
    expect(lost).toBeGreaterThan(0);
    expect(stalled.messages.length + lost).toBeGreaterThanOrEqual(200);
  });

  test('nobody can connect any more, and a real subscriber is not told of a reset', async () => {
    const { publisher, endpoint } = await start();
    const subscriber = new Subscriber({ linger: 0, reconnectInterval: 60_000 });
    onTestFinished(() => subscriber.close());
    subscriber.subscribe();
    subscriber.connect(endpoint);
    expect(await eventually(() => publisher.peers === 1)).toBe(true);
    await pause(50);
    for (let index = 0; index < 50; index++) send(publisher, String(index));
    await publisher.close(1000);
    for (let index = 0; index < 50; index++) {
      const [, body] = await subscriber.receive();
      expect(body?.toString()).toBe(String(index));
    }
    await expect(RawSubscriber.connect(endpoint)).rejects.toThrow('ECONNREFUSED');
  });
});

describe('A broker', () => {
  const WANTS_ALL = Buffer.concat([wireGreeting(), wireReady('XSUB'), subscribeTo('')]);

  /** A publisher and its broker, whose link is lost; behind the next one nobody asks. */
  async function startForsaken(
    options: Partial<ZmtpPublisherOptions> = {},
  ): Promise<{ broker: ZmtpPeer; publisher: ZmtpPublisher }> {
    let opening = WANTS_ALL;
    const broker = await ZmtpPeer.start((socket) => socket.write(opening));
    const publisher = newPublisher(options);
    publisher.connect({ host: '127.0.0.1', port: broker.port });
    expect(await eventually(() => publisher.peers === 1)).toBe(true);
    await pause(50);
    opening = Buffer.concat([wireGreeting(), wireReady('XSUB')]);
    broker.sockets[0]?.destroy();
    expect(await eventually(() => publisher.peers === 0)).toBe(true);
    return { broker, publisher };
  }

  test('that comes back gets what its lost link has not let through', async () => {
    const broker = await ZmtpPeer.start((socket) => {
      socket.write(WANTS_ALL);
      // The first link is never read.
      if (broker.sockets.length === 1) socket.pause();
    });
    const publisher = newPublisher();
    publisher.connect({ host: '127.0.0.1', port: broker.port });
    expect(await eventually(() => publisher.peers === 1)).toBe(true);
    await pause(50);
    for (let index = 0; index < 100; index++) send(publisher, Buffer.alloc(1 << 16, index));
    await pause(100);
    broker.sockets[0]?.destroy();
    expect(await eventually(() => broker.sockets.length === 2)).toBe(true);
    const last = wireMessage(Buffer.from(TOPIC), Buffer.alloc(1 << 16, 99));
    expect(await eventually(() => broker.received(1).includes(last))).toBe(true);
    // Whole messages only: what was cut is sent once more from its beginning.
    const received = broker.received(1);
    const from = received.indexOf(wireFrame(Buffer.from(TOPIC), { isMore: true }));
    expect((received.length - from) % last.length).toBe(0);
  });

  test('whose subscribers come back seconds after it gets what waited for them', async () => {
    const { broker, publisher } = await startForsaken();
    send(publisher, 'while it is away');
    expect(await eventually(() => publisher.peers === 1)).toBe(true);
    send(publisher, 'while nobody asks');
    await pause(2000);
    broker.sockets[1]?.write(subscribeTo(''));
    expect(await eventually(() => broker.received(1).includes('while nobody asks'))).toBe(true);
    expect(broker.received(1).includes('while it is away')).toBe(true);
  });

  test('whose subscribers do not come back is sent nothing of what waited, which counts as lost', async () => {
    let lost = 0;
    const { broker, publisher } = await startForsaken({ onLost: (messages) => (lost += messages) });
    const slab = MessageSlab.ofOne(1);
    slab.messages++;
    expect(send(publisher, 'waits', slab)).toBe(0);
    expect(slab.messages).toBe(1);
    expect(await eventually(() => slab.messages === 0)).toBe(true);
    expect(lost).toBe(1);
    expect(broker.received(1).includes('waits')).toBe(false);
    expect(send(publisher, 'later')).toBe(0);
    await publisher.close(0);
    expect(lost).toBe(1);
  });

  test('that is away is tried again, less and less often', async () => {
    const broker = await ZmtpPeer.start((socket) => socket.destroy());
    const publisher = newPublisher();
    publisher.connect({ host: '127.0.0.1', port: broker.port });
    await pause(2000);
    // At 0, 100, 300, 700 and 1500 ms, each up to a quarter later.
    expect(broker.sockets.length).toBeGreaterThanOrEqual(4);
    expect(broker.sockets.length).toBeLessThanOrEqual(5);
  });
});

test('ipc: a publisher serves a real subscriber over a socket file', async () => {
  const publisher = newPublisher();
  const path = `/tmp/kvrelay-publisher-${process.pid}`;
  await publisher.bind(`ipc://${path}`);
  const subscriber = new Subscriber({ linger: 0 });
  onTestFinished(() => subscriber.close());
  subscriber.subscribe(TOPIC);
  subscriber.connect(`ipc://${path}`);
  expect(await eventually(() => publisher.peers === 1)).toBe(true);
  await pause(50);
  send(publisher, 'one');
  const [topic, body] = await subscriber.receive();
  expect([topic?.toString(), body?.toString()]).toEqual([TOPIC, 'one']);
});
