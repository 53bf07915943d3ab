/** The query halves of trials: what a router gets that asks the relay, in its own protocol. */
import { connect } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { IndexAnswer } from '../../src/protocol/recovery.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { Flood } from '../support/flood.ts';
import { freePorts } from '../support/free-ports.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { natsServerAvailable } from '../support/nats-server.ts';
import { natsFlags, startTestServer } from '../support/nats-trial.ts';
import { eventually } from '../support/plane-collector.ts';
import { eventsOf, type PublishedEvent, shown } from '../support/published-events.ts';
import { FollowingRouter, heldByNewcomer, query } from '../support/relay-queries.ts';
import { ReplayStub } from '../support/replay-stub.ts';
import { decodeEnvelope } from '../support/scenarios.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { Clr, f, positional, Rm, St, trialConfig } from '../support/trials.ts';

const CPU = { medium: 'CPU' };

async function sendAll(trial: SocketTrial, ...messages: ReturnType<typeof f>[]): Promise<void> {
  for (const frames of messages) await trial.send(frames);
  await trial.output(messages.length);
}

function stores(first: number, count: number, blocks = 1): ReturnType<typeof f>[] {
  return Array.from({ length: count }, (_, index) => {
    const hashes = Array.from({ length: blocks }, (__, block) => 1000 * (first + index) + block);
    return f(first + index, [St(hashes)]);
  });
}

test('G11: a dump carries the last real id, and the next live event is one more', async () => {
  const trial = await SocketTrial.start({ flags: ['--event-buffer', '50'] });
  await sendAll(trial, ...stores(0, 200));
  const router = new FollowingRouter();
  const dump = await query(trial.worker.status(), 1);
  expect([dump.kind, dump.lastEventId]).toEqual(['TreeDump', 200]);
  router.believe(dump);
  expect(router.held).toHaveLength(200);

  const ahead = await query(trial.worker.status(), 201);
  expect([ahead.kind, ahead.events]).toEqual(['TooNew', []]);
  await trial.send(f(200, [St(7)]));
  expect((await trial.output(201)).at(-1)).toBe('S#201(∅→7)');
  const next = await query(trial.worker.status(), 201);
  expect([next.kind, next.events.map(shown)]).toEqual(['Events', ['S#201(∅→7)']]);
  expect(next.events.every((event) => router.take(event))).toBe(true);
  expect(router.held).toContain('7');
  expect(await trial.metric('kvrelay_recovery_queries_total', { answer: 'tree_dump' })).toEqual([
    1,
  ]);
});

test('G13: 20 who ask from id 1 in the same moment share at most two dumps', async () => {
  const relay = new InProcessRelay(trialConfig());
  // More than fit one slice, so that events come between two of them.
  for (const frames of stores(0, 800, 500)) relay.push(frames);
  const answers = Array.from({ length: 20 }, () => relay.indexer.answer(1, null));
  let isOver = false;
  let stored = 0;
  const live = (async (): Promise<void> => {
    while (!isOver) {
      relay.push(f(800 + stored, [St(1 + stored++)]));
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  const made: IndexAnswer[] = await Promise.all(
    answers.map(async (answer) => {
      await answer.prepare();
      return answer.finish();
    }),
  );
  isOver = true;
  await live;
  const dumps = made.map((answer) =>
    answer.kind === 'tree_dump' ? answer.events.chunks[0] : null,
  );
  expect(dumps).not.toContain(null);
  expect(new Set(dumps).size).toBeLessThanOrEqual(2);
  expect(stored).toBeGreaterThan(1);
});

test('R8: after a kill, the answer is all that was replayed, each block once, under another publisher', async () => {
  const ports = await freePorts(3);
  const engine = await EngineStub.start(`tcp://127.0.0.1:${ports}`);
  onTestFinished(() => engine.close());
  const replays = await ReplayStub.start(`tcp://127.0.0.1:${ports + 1}`);
  const flags = [
    `--engine-endpoint=tcp://127.0.0.1:${ports}`,
    `--replay-endpoint=tcp://127.0.0.1:${ports + 1}`,
    `--plane-endpoint=tcp://127.0.0.1:${ports + 2}`,
    '--worker-id=7',
  ];
  const publish = async (...messages: ReturnType<typeof f>[]): Promise<void> => {
    replays.keep(...messages);
    for (const frames of messages) await engine.send(frames);
  };
  const first = await FaultProcess.ready(flags);
  await publish(...stores(0, 10));
  const before = await first.reaches(({ blocks }) => blocks.device === 10);
  expect(await heldByNewcomer(before)).toHaveLength(10);
  first.kill('SIGKILL');
  await first.exited;
  const second = await FaultProcess.ready(flags);
  await publish(...stores(10, 1));
  const after = await second.reaches(({ blocks }) => blocks.device === 11);
  const { kind, lastEventId, events } = await query(after);
  expect([kind, lastEventId]).toEqual(['TreeDump', 11]);
  const hashes = events.flatMap((event) => event.hashes);
  expect(hashes).toHaveLength(11);
  expect(new Set(hashes).size).toBe(11);
  expect(after.ranks[0]?.publisher_id).not.toBe(before.ranks[0]?.publisher_id);
});

test('T2: a remove on the device leaves the copy on the host, for who asks too', async () => {
  const trial = await SocketTrial.start();
  await sendAll(trial, f(0, [St(101)]), f(1, [St(101, CPU)]), f(2, [Rm(101)]));
  expect(await heldByNewcomer(trial.worker.status())).toEqual(['101@host_pinned']);
});

test.each([
  ['a map', Clr],
  ['an array', positional(Clr, 1)],
])('C1: after a clear as %s nobody gets anything that was before it', async (_, clear) => {
  const trial = await SocketTrial.start();
  await sendAll(trial, f(0, [St(101)]), f(1, [St(102)]));
  expect(await heldByNewcomer(trial.worker.status())).toEqual(['101', '102']);
  await trial.send(f(2, [clear]));
  await trial.output(3);
  expect(await heldByNewcomer(trial.worker.status())).toEqual([]);
  const missed = await query(trial.worker.status(), 2);
  expect(missed.events.map(shown)).toEqual(['S#2(∅→102)', 'X#3']);
});

test('C3: one clear empties all tiers of its rank, for who asks too', async () => {
  const trial = await SocketTrial.start({
    ranks: 2,
    engines: 1,
    flags: ['--engine-sockets', 'shared'],
  });
  await trial.send(f(0, [St(101)]));
  await trial.send(f(1, [St(201, CPU)]));
  await trial.send(f(2, [St(301)], { rank: 1 }));
  await trial.output(2);
  await trial.output(1, 1);
  expect(await heldByNewcomer(trial.worker.status())).toEqual(['101', '201@host_pinned']);
  await trial.send(f(3, [Clr]));
  expect((await trial.output(3)).at(-1)).toBe('X#3');
  expect(await heldByNewcomer(trial.worker.status())).toEqual([]);
  expect(await heldByNewcomer(trial.worker.status(), 1)).toEqual(['301']);
});

test('H8: the largest hash is exact in an answer', async () => {
  const largest = 2n ** 64n - 1n;
  const trial = await SocketTrial.start({ flags: ['--worker-id', `${largest}`] });
  await sendAll(trial, f(0, [St(largest)]));
  for (const start of [null, 1]) {
    const { events } = await query(trial.worker.status(), start);
    expect(events.map(({ workerId, hashes }) => [workerId, ...hashes])).toEqual([
      [largest, largest],
    ]);
  }
});

test('Z2: what a router has not got from its socket a query brings, from any id on', {
  timeout: 60_000,
}, async () => {
  const port = await freePorts(1);
  const flood = await Flood.start({
    count: 20_000,
    blocks: 1,
    endpoint: `tcp://127.0.0.1:${port}`,
  });
  const relay = await FaultProcess.ready([
    `--engine-endpoint=tcp://127.0.0.1:${port}`,
    '--plane-endpoint=tcp://127.0.0.1:0',
  ]);
  await flood.send();
  const status = await relay.reaches(({ counters }) => counters.published_events === 20_000);
  const missed = await query(status, 15_001);
  expect([missed.kind, missed.lastEventId]).toEqual(['Events', 20_000]);
  const ids = missed.events.map(({ id }) => Number(id));
  expect(ids).toEqual(Array.from({ length: 5000 }, (_, index) => 15_001 + index));
  const all = await query(status, 1);
  expect([all.kind, all.lastEventId]).toEqual(['TreeDump', 20_000]);
  const held = all.events.reduce((sum, { hashes }) => sum + hashes.length, 0);
  expect(held).toBe(status.ranks[0]?.blocks.device);
});

describe.skipIf(!natsServerAvailable())('N3', () => {
  interface Outage {
    readonly relay: FaultProcess;
    readonly engine: EngineStub;
    readonly received: PublishedEvent[];
    readonly restart: () => Promise<void>;
  }

  /** A relay and a router on a server that has just been killed; `comesBackMs`: how often the router tries. */
  async function startOutage(comesBackMs: number, ...flags: string[]): Promise<Outage> {
    const server = await startTestServer();
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const received: PublishedEvent[] = [];
    const reconnect = { maxReconnectAttempts: -1, reconnectTimeWait: comesBackMs };
    const router = await connect({ servers: server.url, reconnectJitter: 0, ...reconnect });
    onTestFinished(() => router.close());
    router.subscribe('namespace.>', {
      callback: (_error, { data }) => received.push(...eventsOf(decodeEnvelope(data).payload)),
    });
    await router.flush();
    const relay = await FaultProcess.ready([
      ...natsFlags(engine, server),
      '--worker-id=7',
      ...flags,
    ]);
    server.kill('SIGKILL');
    await server.exited;
    await relay.reaches((_, { plane }) => !plane.connected);
    const restart = async (): Promise<void> => {
      await startTestServer({ port: server.port });
    };
    return { relay, engine, received, restart };
  }

  test('N3: what is stored while the server is away all arrives, in order', async () => {
    const { relay, engine, received, restart } = await startOutage(50);
    for (const frames of stores(0, 50)) await engine.send(frames);
    await relay.reaches(({ counters }) => counters.published_events === 50);
    await restart();
    expect(await eventually(() => received.length >= 50, 20_000)).toBe(true);
    expect(received.map(({ id }) => Number(id))).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
    expect(await heldByNewcomer(await relay.status())).toHaveLength(50);
  });

  test('N3: what the outbox has no room for is counted, and a query fills the rest', async () => {
    const { relay, engine, received, restart } = await startOutage(50, '--outbox-bytes', '65536');
    for (const frames of stores(0, 50, 100)) await engine.send(frames);
    await relay.reaches(({ counters }) => counters.published_events === 50);
    await restart();
    await relay.reaches((_, { plane }) => plane.connected && plane.outbox_messages === 0);
    const full = { reason: 'outbox_full' };
    const dropped = await relay.metric('kvrelay_publish_failures_total', full);
    expect(dropped).toBeGreaterThan(0);
    expect(await eventually(() => received.at(-1)?.id === 50n, 20_000)).toBe(true);
    expect(received.length).toBeLessThanOrEqual(50 - dropped);
    const router = new FollowingRouter();
    const status = await relay.status();
    for (const event of received) {
      if (router.take(event)) continue;
      router.believe(await query(status, router.cursor + 1));
    }
    expect(router.held).toHaveLength(5000);
    expect(router.held).toEqual(await heldByNewcomer(status));
  });
});
