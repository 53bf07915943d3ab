/** Trials of the brokerless plane: routers that read, routers that do not, and what idling costs. */
import { expect, onTestFinished, test } from 'vitest';
import { Subscriber } from 'zeromq';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { Flood } from '../support/flood.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { eventsOf } from '../support/published-events.ts';
import { decodeEnvelope } from '../support/scenarios.ts';
import { scaled } from '../support/whole.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves once `count` has stopped to grow. */
async function settled(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); ) {
    before = count();
    await pause(2000);
  }
}

/** A router that subscribes and then reads nothing until it is told to. */
class SleepingRouter {
  readonly sequences: number[] = [];
  readonly #socket: Subscriber;
  #reading: Promise<void> | null = null;

  /** With `receiveBytes` as little as possible waits on its own side, so that it soon waits on the other. */
  static async connect(endpoint: string, receiveBytes = -1): Promise<SleepingRouter> {
    const router = new SleepingRouter(receiveBytes);
    onTestFinished(async () => {
      router.#socket.close();
      await router.#reading;
    });
    const handshake = new Promise<void>((resolve) => {
      router.#socket.events.on('handshake', () => resolve());
    });
    router.#socket.subscribe();
    router.#socket.connect(endpoint);
    await handshake;
    await pause(50);
    return router;
  }

  private constructor(receiveBufferSize: number) {
    const receiveHighWaterMark = receiveBufferSize === -1 ? 1000 : 1;
    this.#socket = new Subscriber({ linger: 0, receiveHighWaterMark, receiveBufferSize });
  }

  wake(): void {
    this.#reading ??= this.#read();
  }

  async #read(): Promise<void> {
    for await (const [, , number] of this.#socket) {
      this.sequences.push(Number((number as Buffer).readBigUInt64BE()));
    }
  }
}

/** Counts and checks what comes, and keeps none of it. */
class OrderedRouter {
  count = 0;
  /** What is not the number after the one before it. */
  readonly breaks: string[] = [];
  readonly #socket: Subscriber = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
  #reading: Promise<void> = Promise.resolve();

  static async connect(endpoint: string): Promise<OrderedRouter> {
    const router = new OrderedRouter();
    onTestFinished(async () => {
      router.#socket.close();
      await router.#reading;
    });
    const handshake = new Promise<void>((resolve) => {
      router.#socket.events.on('handshake', () => resolve());
    });
    router.#socket.subscribe();
    router.#socket.connect(endpoint);
    router.#reading = router.#read();
    await handshake;
    await pause(50);
    return router;
  }

  async #read(): Promise<void> {
    for await (const [, , number, body] of this.#socket) {
      const sequence = Number((number as Buffer).readBigUInt64BE());
      const [event] = eventsOf(decodeEnvelope((body as Buffer).subarray(5)).payload);
      const expected = this.count++;
      if (sequence !== expected || Number(event?.id) !== expected + 1) {
        this.breaks.push(`${sequence} (id ${event?.id}) in place of ${expected}`);
      }
    }
  }
}

/** So that a router can count them: `safe` joins batches of a flood. */
const MESSAGE_A_BATCH = ['--compat', 'strict'];

async function startRelay(ranks: number, port: number, ...flags: string[]): Promise<FaultProcess> {
  return FaultProcess.ready([
    '--engine-endpoint',
    `tcp://127.0.0.1:${port}`,
    '--dp-size',
    String(ranks),
    '--plane-endpoint',
    'tcp://127.0.0.1:0',
    ...flags,
  ]);
}

test(
  'Z1: routers that never read cost the others nothing: ranks publish at once, each in order',
  async () => {
    const ranks = 4;
    const [seconds, messagesPerS, blocks] = [scaled(2, 30), scaled(1500, 1000), 120];
    const port = await freePorts(ranks);
    const floods = await Promise.all(
      Array.from({ length: ranks }, (_, rank) =>
        Flood.start({ seconds, messagesPerS, blocks, endpoint: `tcp://127.0.0.1:${port + rank}` }),
      ),
    );
    const relay = await startRelay(ranks, port, ...MESSAGE_A_BATCH);
    const endpoints = (await relay.status()).ranks.map((rank) => rank.plane_endpoint ?? '');
    const healthy: OrderedRouter[] = [];
    for (const endpoint of endpoints) {
      await SleepingRouter.connect(endpoint, 4096);
      healthy.push(await OrderedRouter.connect(endpoint));
    }
    const sent = await Promise.all(floods.map((flood) => flood.send()));
    // Sooner than the heartbeat would cut the sleeping ones off.
    await eventually(() => healthy.every(({ count }, rank) => count === sent[rank]), 8000);
    expect(healthy.map(({ count }) => count)).toEqual(sent);
    expect(healthy.flatMap(({ breaks }) => breaks)).toEqual([]);
    // Enough for the sleeping ones to be really stalled.
    expect(Math.min(...sent) * blocks * 30).toBeGreaterThan(10_000_000);
    expect(await relay.metric('kvrelay_publish_failures_total', { reason: 'client' })).toBe(0);
    expect(await relay.metric('kvrelay_publish_failures_total', { reason: 'outbox_full' })).toBe(0);
    expect((await relay.terminate()).code).toBe(0);
    expect(relay.output).not.toMatch(/EBUSY|busy/i);
  },
  scaled(40_000, 120_000),
);

test('Z2: a router that sleeps while 20 000 stores go out gets them all when it wakes', {
  timeout: 90_000,
}, async () => {
  const port = await freePorts(1);
  // Whole: more than its link holds, and longer than a heartbeat would have waited.
  const blocks = scaled(1, 100);
  const flood = await Flood.start({ count: 20_000, blocks, endpoint: `tcp://127.0.0.1:${port}` });
  const relay = await startRelay(1, port, ...MESSAGE_A_BATCH);
  const { plane_endpoint } = (await relay.status()).ranks[0] ?? {};
  const sleeper = await SleepingRouter.connect(plane_endpoint ?? '');
  await flood.send();
  await relay.reaches(({ counters }) => counters.published_events === 20_000);
  await pause(scaled(300, 25_000));
  sleeper.wake();
  await eventually(() => sleeper.sequences.length >= 20_000, 20_000);
  expect(sleeper.sequences).toEqual(Array.from({ length: 20_000 }, (_, index) => index));
  const slow = { reason: 'slow_subscriber' };
  expect(await relay.metric('kvrelay_publish_failures_total', slow)).toBe(0);
  expect(await relay.metric('kvrelay_degraded', slow)).toBe(0);
});

/** CI has this with a smaller socket, in test/sinks/zmq-plane.test.ts. */
const longSleeps = scaled<number[]>([], [150_000]);

test.for(longSleeps)(
  'Z2: a router that sleeps for longer loses messages, which shows, and the others get them all (%i sent)',
  { timeout: 120_000 },
  async (count) => {
    const port = await freePorts(1);
    const flood = await Flood.start({ count, blocks: 4, endpoint: `tcp://127.0.0.1:${port}` });
    const relay = await startRelay(1, port, ...MESSAGE_A_BATCH);
    const { plane_endpoint } = (await relay.status()).ranks[0] ?? {};
    const sleeper = await SleepingRouter.connect(plane_endpoint ?? '', 4096);
    const healthy = new ZmqCollector(plane_endpoint ?? '');
    onTestFinished(() => healthy.close());
    await healthy.subscribed();
    await flood.send();
    const { ranks } = await relay.reaches(({ counters }) => counters.published_events === count);
    expect(ranks[0]?.degraded.map(({ code }) => code)).toEqual(['slow_subscriber']);
    await eventually(() => healthy.frames.length === count, 20_000);
    expect(healthy.frames.length).toBe(count);
    const { sequences } = sleeper;
    sleeper.wake();
    // What the socket held for it, and then a hole that its router can see.
    await settled(() => sequences.length);
    const last = Math.min(sequences.length, 50_000);
    expect(last).toBeGreaterThan(1000);
    expect(sequences.slice(0, last)).toEqual(Array.from({ length: last }, (_, index) => index));
    expect(sequences.length).toBeLessThan(count);
    const slow = { reason: 'slow_subscriber' };
    const lost = await relay.metric('kvrelay_publish_failures_total', slow);
    expect(sequences.length + lost).toBe(count);
    expect(relay.logs.filter(({ reason }) => reason === 'slow_subscriber').length).toBeLessThan(4);
    expect((await relay.terminate()).code).toBe(0);
    expect(relay.output).not.toMatch(/EBUSY|busy/i);
  },
);

test(
  'Z6: connected ranks without traffic cost almost nothing',
  async () => {
    const ranks = 4;
    const seconds = scaled(3, 60);
    const port = await freePorts(ranks);
    for (let rank = 0; rank < ranks; rank++) {
      const engine = await EngineStub.start(`tcp://127.0.0.1:${port + rank}`);
      onTestFinished(() => engine.close());
    }
    const relay = await startRelay(ranks, port);
    // Compilers and collectors still work for what starting was: the first windows may cost more.
    const spent = (): Promise<number> => relay.metric('process_cpu_seconds_total');
    const windows: number[] = [];
    do {
      const before = await spent();
      await pause(seconds * 1000);
      windows.push((await spent()) - before);
    } while (Math.min(...windows) >= seconds / 60 && windows.length < scaled(8, 2));
    expect(Math.min(...windows)).toBeLessThan(seconds / 60);
  },
  scaled(60_000, 180_000),
);
