/**
 * Many routers ask at once while events go on: none of them may end with less than the source has.
 *
 * The routers of this test do what a stock one was seen to do: while an answer is on its way they keep the
 * newest 1024 events, then apply those behind the answer's last id, and never ask for what is missing.
 */
import { unpack } from 'msgpackr';
import { expect, onTestFinished, test } from 'vitest';
import { RecoveryCounts } from '../../../src/metrics/recovery-counts.ts';
import { RelayMetrics } from '../../../src/metrics/relay-metrics.ts';
import type { PlaneMessage } from '../../../src/protocol/envelope.ts';
import { QueryService } from '../../../src/router/recovery/query-service.ts';
import { RequestServer } from '../../../src/router/recovery/request-server.ts';
import { ResyncMonitor } from '../../../src/router/recovery/resync-monitor.ts';
import { OutputHold } from '../../../src/sinks/output-hold.ts';
import { FakeIndex } from '../../support/fake-index.ts';
import { FakeRouter } from '../../support/fake-router.ts';
import { eventually } from '../../support/plane-collector.ts';
import { PATH, startRecovery, WORKER } from '../../support/recovery-trial.ts';

const BUFFERED_EVENTS = 1024;
const EVENTS_PER_MESSAGE = 15;

interface RouterEvent {
  readonly event: {
    readonly event_id: number;
    readonly data: { readonly stored: { readonly blocks: readonly { block_hash: bigint }[] } };
  };
}

/** One source as a router follows it. */
class Follower {
  readonly blocks = new Set<bigint>();
  lostEvents = 0;
  #buffered: RouterEvent[] | null = [];

  take(event: RouterEvent): void {
    if (this.#buffered === null) {
      this.#apply(event);
      return;
    }
    this.#buffered.push(event);
    if (this.#buffered.length <= BUFFERED_EVENTS) return;
    this.#buffered.shift();
    this.lostEvents++;
  }

  answered(events: readonly RouterEvent[], lastEventId: number): void {
    for (const event of events) this.#apply(event);
    for (const event of this.#buffered ?? []) {
      if (event.event.event_id > lastEventId) this.#apply(event);
    }
    this.#buffered = null;
  }

  #apply({ event }: RouterEvent): void {
    for (const { block_hash } of event.data.stored.blocks) this.blocks.add(BigInt(block_hash));
  }
}

interface Source {
  readonly index: FakeIndex;
  readonly metrics: RelayMetrics;
  readonly port: number;
  readonly followers: Follower[];
  readonly publish: () => void;
}

async function startSource(): Promise<Source> {
  const followers: Follower[] = [];
  const [counts, metrics] = [new RecoveryCounts(), new RelayMetrics()];
  const index = new FakeIndex({ workerId: WORKER });
  for (let chain = 0; chain < 200; chain++) index.store(100);
  const sink = {
    maxMessageBytes: Number.POSITIVE_INFINITY,
    outboxBytes: 0,
    publish: ({ envelope }: PlaneMessage): void => {
      const events = unpack(envelope) as RouterEvent[];
      for (const follower of followers) for (const event of events) follower.take(event);
    },
  };
  const hold = new OutputHold({ maxBytes: 1 << 26, onOverrun: () => undefined }, sink, metrics);
  const service = new QueryService(counts, (error) => expect(error).toBeUndefined());
  const resyncs = new ResyncMonitor({
    quietMs: 0,
    lostMessages: () => 0,
    onResync: () => undefined,
  });
  const watched = resyncs.watching(hold);
  service.add(PATH, { workerId: WORKER, dpRank: 0, index, hold: watched, metrics });
  const accept = service.accept.bind(service);
  const onError = (): void => undefined;
  const server = new RequestServer({ host: '127.0.0.1', port: 0, accept, counts, onError });
  const port = await server.start();
  onTestFinished(async () => {
    await server.stop();
    service.stop();
    hold.release();
  });
  let sequence = 0;
  const publish = (): void => {
    const events = Array.from({ length: EVENTS_PER_MESSAGE }, () => index.store(1));
    const envelope = Buffer.concat([Buffer.from([0x90 | EVENTS_PER_MESSAGE]), ...events]);
    hold.publish({ sequence: sequence++, eventCount: EVENTS_PER_MESSAGE, envelope });
  };
  return { index, metrics, port, followers, publish };
}

async function join({ port, followers }: Source): Promise<void> {
  const router = await FakeRouter.start();
  onTestFinished(() => router.close());
  const follower = new Follower();
  followers.push(follower);
  router.onAnswer = (body) => {
    const { TreeDump: dump } = unpack(body).data;
    follower.answered(dump.events, dump.last_event_id);
  };
  await router.ask(port, PATH, { worker_id: WORKER });
}

test('20 routers that join while 5,000 events a second go on all get everything', async () => {
  const source = await startSource();
  const startMs = performance.now();
  let published = 0;
  const live = setInterval(() => {
    for (; published < (performance.now() - startMs) * 5; published += EVENTS_PER_MESSAGE) {
      source.publish();
    }
  }, 1);
  onTestFinished(() => clearInterval(live));
  await Promise.all(Array.from({ length: 20 }, () => join(source)));
  await new Promise((resolve) => setTimeout(resolve, 300));
  clearInterval(live);
  const { index, metrics, followers } = source;
  await eventually(() => followers.every(({ blocks }) => blocks.size === index.blocks.length));
  const missing = followers.map(({ blocks }) => index.blocks.length - blocks.size);
  expect(missing).toEqual(followers.map(() => 0));
  expect(metrics.recoveryQueries.tree_dump).toBe(20);
  // Each hold is at most 2 s, with what a busy machine adds.
  const { counts, bounds } = metrics.outputHoldSeconds;
  expect(bounds.at(-1)).toBe(2);
  expect(metrics.outputHoldSeconds.sum / Math.max(1, counts.length)).toBeLessThan(2.5);
});

test('ranges of megabytes take turns like dumps, while small ones do not wait', async () => {
  const trial = await startRecovery({
    service: { maxDumps: 1 },
    stream: { stallTimeoutMs: 1500 },
  });
  for (let event = 0; event < 200; event++) trial.index.store(2000);
  trial.router.behaviour = 'do not read';
  const askRange = (start: bigint): void =>
    void trial.router.ask(trial.port, PATH, { worker_id: WORKER, start_event_id: start });
  for (const start of [1n, 2n, 3n]) askRange(start);
  expect(await eventually(() => trial.router.responses.length === 3)).toBe(true);
  askRange(200n);
  // The first of the large ones, and the small one behind them all.
  expect(await eventually(() => trial.metrics.recoveryQueries.events === 2)).toBe(true);
  expect(trial.counts.failedAnswers.timeout).toBe(0);
  expect(await eventually(() => trial.metrics.recoveryQueries.events === 4, 20_000)).toBe(true);
  expect(trial.counts.failedAnswers.timeout).toBeGreaterThan(0);
}, 30_000);
