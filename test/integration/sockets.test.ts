/**
 * The captured scenarios again, through real sockets: an engine's PUB, the worker, a nats-server or the
 * brokerless plane. Malformed input cannot be told from input still under way, so each scenario ends with
 * a stop of the worker, which passes on what has arrived and drains.
 */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { arena } from '../../src/kernel/arena.ts';
import { readFrames } from '../../src/listener/frames.ts';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { framesOf } from '../support/in-process-relay.ts';
import {
  type NatsServerProcess,
  natsServerAvailable,
  startNatsServer,
} from '../support/nats-server.ts';
import { eventually, NatsCollector, ZmqCollector } from '../support/plane-collector.ts';
import {
  asCaptured,
  comparable,
  readScenarios,
  SCENARIO_FILES,
  type Scenario,
} from '../support/scenarios.ts';
import { readTrace, traceRecords } from '../support/traces.ts';
import { configOf, flagsOf } from '../support/worker-config.ts';

const logger = createLogger({ level: 'silent', format: 'json' });

/** A timeout scenario can be quiet for this long before its last message. */
const LONGEST_QUIET_MS = 20_000;

async function startWorker(engine: EngineStub, flags: readonly string[]): Promise<Worker> {
  const worker = createWorker(configOf('--engine-endpoint', engine.endpoint, ...flags), { logger });
  await worker.start();
  await engine.subscribed();
  await eventually(() => worker.ready().ready);
  return worker;
}

async function send(engine: EngineStub, worker: Worker, scenario: Scenario): Promise<void> {
  for (const step of scenario.input) {
    if (step.delay_ms > 0) await new Promise((resolve) => setTimeout(resolve, step.delay_ms));
    if (step.frames !== undefined) await engine.send(framesOf(step.frames));
    if (step.shutdown === true) await worker.stop();
  }
}

/** Messages that our own reader refuses; each has to be counted by the worker, none twice. */
function malformedIn(scenario: Scenario): number {
  const reader = new BatchReader({ compat: 'strict', engine: 'vllm' });
  return scenario.input.filter(({ frames }) => {
    if (frames === undefined) return false;
    arena.reset();
    const message = readFrames(framesOf(frames), 'strict');
    return typeof message === 'string' || typeof reader.read(message.payload, 0) === 'string';
  }).length;
}

function malformedSeenBy(worker: Worker): number {
  return worker.status().ranks[0]?.counters.malformed ?? 0;
}

describe.skipIf(!natsServerAvailable())('over real sockets and a nats-server', () => {
  let server: NatsServerProcess;
  let routers: NatsCollector;

  beforeAll(async () => {
    server = await startNatsServer();
    routers = await NatsCollector.connect(server.url);
  });
  afterAll(async () => {
    await routers.close();
    await server.stop();
  });

  async function started(
    name: string,
    settings: Scenario['settings'],
  ): Promise<{ subject: string; engine: EngineStub; worker: Worker }> {
    const engine = await EngineStub.start();
    const plane = ['--event-plane', 'nats', '--nats-server', server.url, '--namespace', name];
    const worker = await startWorker(engine, [...flagsOf(settings), ...plane]);
    const subject = `namespace.${name}.component.backend.endpoint.generate.kv-events`;
    return { subject, engine, worker };
  }

  async function relayed(name: string, scenario: Scenario): Promise<ReturnType<typeof asCaptured>> {
    const { subject, engine, worker } = await started(name, scenario.settings);
    await send(engine, worker, scenario);
    const count = scenario.output.length;
    await eventually(() => routers.on(subject).length >= count, LONGEST_QUIET_MS);
    const malformed = malformedIn(scenario);
    await eventually(() => malformedSeenBy(worker) >= malformed);
    await worker.stop();
    expect(malformedSeenBy(worker)).toBe(malformed);
    engine.close();
    await routers.settle();
    return asCaptured(routers.on(subject), scenario.output);
  }

  describe.each(SCENARIO_FILES)('%s', (file) => {
    test.concurrent.each(readScenarios(file).map((scenario, index) => ({ scenario, index })))(
      '$scenario.name',
      async ({ scenario, index }) => {
        const published = await relayed(`${file}-${index}`, scenario);
        expect(published).toEqual(comparable(scenario.output));
      },
    );
  });

  test.each(['trace-16', 'trace-512'])('%s', async (name) => {
    const trace = readTrace(name);
    const { subject, engine, worker } = await started(name, trace.settings);
    for (const frames of traceRecords(gunzipSync(trace.bytes))) await engine.send(frames);
    await eventually(() => routers.on(subject).length >= trace.expected.messages, 30_000);
    await worker.stop();
    engine.close();
    await routers.settle();
    const payloads = createHash('sha256');
    for (const { payload } of routers.on(subject)) {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(payload.length);
      payloads.update(length).update(payload);
    }
    expect(payloads.digest('hex')).toBe(trace.expected.payloads_sha256);
  });
});

describe('over real sockets and the brokerless plane', () => {
  test.concurrent.each(readScenarios('mixed').concat(readScenarios('coalesce')))(
    '$name',
    async (scenario) => {
      const engine = await EngineStub.start();
      const worker = await startWorker(engine, [
        ...flagsOf(scenario.settings),
        '--event-plane',
        'zmq',
        '--plane-endpoint',
        'tcp://127.0.0.1:0',
      ]);
      const router = new ZmqCollector(worker.status().plane.endpoint ?? '');
      await router.subscribed();
      await send(engine, worker, scenario);
      await eventually(() => router.frames.length >= scenario.output.length);
      await worker.stop();
      engine.close();
      await router.close();
      expect(asCaptured(router.published, scenario.output)).toEqual(comparable(scenario.output));
    },
  );
});
