/** Trials of memory and time: churn, restarts of the engine, and an engine faster than the relay. */
import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker } from '../../src/worker.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { Flood } from '../support/flood.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { f, message, Rm, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';
import { configOf } from '../support/worker-config.ts';

const MIB = 1 << 20;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Heap and everything outside of it, after a forced collection. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(
  'M1: after every round of stores and removes everything is freed again',
  async () => {
    const [rounds, warmUp] = scaled([12, 4], [50, 10]);
    const [messages, perMessage] = [40, 500];
    const engine = await EngineStub.start();
    // Kept events are bounded, too, but by default only beyond what these rounds send.
    const kept = ['--event-buffer-bytes', `${MIB}`];
    const rig = ['--engine-endpoint', engine.endpoint, '--block-size', '4', ...kept];
    const worker = createWorker(configOf(...rig, '--event-plane', 'none', '--http', 'off'), {
      logger: createLogger({ level: 'silent', format: 'json' }),
    });
    onTestFinished(async () => {
      await worker.stop();
      engine.close();
    });
    await worker.start();
    await engine.subscribed();

    // One chain through all messages, then each of its blocks is removed.
    const first = (index: number): number => index * perMessage + 1;
    const chain = Array.from({ length: messages }, (_, index) => {
      const hashes = Array.from({ length: perMessage }, (_, block) => first(index) + block);
      return hashes;
    });
    const payloads = [
      ...chain.map((hashes, index) => {
        const parent = index === 0 ? {} : { parent: first(index) - 1 };
        return f(0, [St(hashes, parent)])[2] as Buffer;
      }),
      ...chain.map((hashes) => f(0, [Rm(hashes)])[2] as Buffer),
    ];
    let sequence = 0;
    const received = (): number => worker.status().ranks[0]?.counters.received ?? 0;
    const heldAfter: number[] = [];
    let mostLive = 0;
    for (let round = 0; round < rounds; round++) {
      for (const [index, payload] of payloads.entries()) {
        await engine.send(message(sequence++, payload));
        if (index !== messages - 1) continue;
        await eventually(() => received() === sequence);
        mostLive = Math.max(mostLive, worker.status().ranks[0]?.blocks.device ?? 0);
      }
      await eventually(() => received() === sequence);
      expect(worker.status().ranks[0]?.blocks.device).toBe(0);
      heldAfter.push(heldBytes());
    }
    expect(mostLive).toBe(messages * perMessage);
    const { counters } = worker.status().ranks[0] ?? {};
    expect(counters?.published_blocks).toBe(rounds * messages * perMessage * 2);
    const [early, late] = [heldAfter[warmUp - 1] ?? 0, heldAfter[rounds - 1] ?? 0];
    expect(late / early).toBeLessThan(1.1);
  },
  scaled(30_000, 300_000),
);

test.skipIf(process.platform !== 'linux')(
  'M3: engine restarts leave no descriptor behind',
  async () => {
    const [restarts, warmUp] = scaled([16, 4], [200, 20]);
    const port = await freePorts(1);
    const endpoint = `tcp://127.0.0.1:${port}`;
    const relay = await FaultProcess.started([
      '--engine-endpoint',
      endpoint,
      '--plane-endpoint',
      'tcp://127.0.0.1:0',
    ]);
    const descriptors = (): number => readdirSync(`/proc/${relay.pid}/fd`).length;
    const opened: number[] = [];
    for (let restart = 0; restart < restarts; restart++) {
      const engine = await EngineStub.start(endpoint);
      await engine.subscribed();
      await relay.until(() => relay.logs.filter(isConnect).length > restart);
      await engine.send(f(0, [St(101)]));
      await relay.reaches(({ counters }) => counters.received === restart + 1);
      opened.push(descriptors());
      engine.close();
      await relay.until(() => relay.logs.filter(isDisconnect).length > restart);
    }
    const [early, late] = [opened[warmUp - 1] ?? 0, opened[restarts - 1] ?? 0];
    expect(Math.abs(late - early)).toBeLessThanOrEqual(5);
    expect(relay.output).not.toMatch(/MaxListeners|Warning/);
  },
  scaled(30_000, 300_000),
);

function isConnect({ msg }: Record<string, unknown>): boolean {
  return msg === 'engine connected';
}

function isDisconnect({ msg }: Record<string, unknown>): boolean {
  return msg === 'engine disconnected';
}

/** Times of answers while the process is under load. */
class Probes {
  readonly healthMs: number[] = [];
  readonly metricsMs: number[] = [];
  /** 99th percentiles of the loop's delay, one a scrape. */
  readonly lagP99Ms: number[] = [];
  readonly residentBytes: number[] = [];
  #isOver = false;
  #running: Promise<void>;

  constructor(relay: FaultProcess) {
    this.#running = this.#run(relay);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #run(relay: FaultProcess): Promise<void> {
    while (!this.#isOver) {
      await pause(200);
      const startMs = performance.now();
      expect(JSON.parse(await relay.text('/health/live'))).toEqual({ live: true });
      const healthAtMs = performance.now();
      this.healthMs.push(healthAtMs - startMs);
      const lag = await relay.metric('nodejs_eventloop_lag_p99_seconds');
      this.metricsMs.push(performance.now() - healthAtMs);
      this.lagP99Ms.push(lag * 1000);
      this.residentBytes.push(await relay.metric('process_resident_memory_bytes'));
    }
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
}

// Two floods, a relay and the test share the machine with whatever else runs there: what is measured in
// wall time is tried again before it counts as wrong.
test('M4, M6: a flood costs bounded memory, is accounted for, and holds up neither health nor timers', {
  retry: 2,
  timeout: scaled(40_000, 200_000),
}, async () => {
  const seconds = scaled(2, 60);
  const port = await freePorts(2);
  const flood = await Flood.start({
    seconds,
    sendHwm: 100_000,
    endpoint: `tcp://127.0.0.1:${port}`,
  });
  const quiet = await EngineStub.start(`tcp://127.0.0.1:${port + 1}`);
  onTestFinished(() => quiet.close());
  const relay = await FaultProcess.ready([
    '--engine-endpoint',
    flood.endpoint,
    '--dp-size',
    '2',
    '--plane-endpoint',
    'tcp://127.0.0.1:0',
    '--batching-timeout-ms',
    '20',
  ]);
  await quiet.subscribed();
  const { plane_endpoint } = (await relay.status()).ranks[1] ?? {};
  const router = new ZmqCollector(plane_endpoint ?? '');
  onTestFinished(() => router.close());
  await router.subscribed();
  const probes = new Probes(relay);
  let isOver = false;
  const flooded = flood.send().finally(() => {
    isOver = true;
  });

  // Of the other rank's pairs of stores the first leaves at once, the second when the batch timer says so.
  const sentMs: number[] = [];
  const flushMs: number[] = [];
  const takeFlushes = (): void => {
    for (const sent of sentMs.slice(flushMs.length, router.frames.length)) {
      flushMs.push(performance.now() - sent);
    }
  };
  while (!isOver || flushMs.length < sentMs.length) {
    for (let store = 0; store < 2 && !isOver; store++) {
      await quiet.send(f(sentMs.length, [St(101 + sentMs.length)], { rank: 1 }));
      sentMs.push(performance.now());
    }
    // Longer than a flush may take: the next pair would push the second one out.
    for (const untilMs = performance.now() + 150; performance.now() < untilMs; ) {
      await pause(2);
      takeFlushes();
    }
  }
  const sent = await flooded;
  await probes.end();
  // A gap shows at the next message.
  let previous = -1;
  await relay.reaches(({ counters }) => {
    const isStill = counters.received === previous;
    previous = counters.received;
    return isStill;
  });
  expect(await flood.send()).toBe(sent + 1);
  const { ranks } = await relay.reaches(
    ({ counters }) => counters.received + counters.lost_batches === sent + 1,
  );
  const { counters } = ranks[0] ?? {};
  await relay.reaches(
    (rank) => rank.counters.published_events + rank.counters.lost_batches === sent + 1,
  );
  expect(counters?.received).toBeGreaterThan(seconds * 2000);
  expect(Math.max(...probes.residentBytes)).toBeLessThan(500 * MIB);
  expect(Math.max(...probes.healthMs)).toBeLessThan(1000);
  expect(Math.max(...probes.metricsMs)).toBeLessThan(500);
  expect(quantile(flushMs, scaled(0.95, 0.99))).toBeLessThan(100);
  expect(quantile(probes.lagP99Ms, 0.5)).toBeLessThan(50);
});
