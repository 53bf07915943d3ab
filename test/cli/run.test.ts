/** Captured scenarios through the built program, as a process, with a real engine socket and server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EngineStub } from '../support/engine-stub.ts';
import { framesOf } from '../support/in-process-relay.ts';
import {
  type NatsServerProcess,
  natsServerAvailable,
  startNatsServer,
} from '../support/nats-server.ts';
import { eventually, NatsCollector } from '../support/plane-collector.ts';
import { RunProcess } from '../support/run-process.ts';
import { asCaptured, comparable, readScenarios, SCENARIO_FILES } from '../support/scenarios.ts';
import { flagsOf } from '../support/worker-config.ts';

/** From every file the first and the last one without a shutdown, and some from the largest. */
const scenarios = SCENARIO_FILES.flatMap((file) => {
  const all = readScenarios(file).filter(({ input }) => input.every((step) => !step.shutdown));
  return [...new Set([all[0], all.at(-1), file === 'mixed' ? all[4] : undefined])].filter(
    (scenario) => scenario !== undefined,
  );
});

describe.skipIf(!natsServerAvailable())('kvrelay run', () => {
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

  test('plays at least 30 scenarios', () => {
    expect(scenarios.length).toBeGreaterThanOrEqual(30);
  });

  test.concurrent.each(scenarios.map((scenario, index) => ({ scenario, index })))(
    '$scenario.name',
    async ({ scenario, index }) => {
      const namespace = `run-${index}`;
      const subject = `namespace.${namespace}.component.backend.endpoint.generate.kv-events`;
      const engine = await EngineStub.start();
      const flags = flagsOf(scenario.settings).filter(
        (flag) => flag !== '--http' && flag !== 'off',
      );
      const relay = new RunProcess([
        'run',
        '--engine-endpoint',
        engine.endpoint,
        '--event-plane',
        'nats',
        '--nats-server',
        server.url,
        '--namespace',
        namespace,
        '--http',
        '127.0.0.1:0',
        ...flags,
      ]);
      await relay.ready();
      await engine.subscribed();
      for (const step of scenario.input) {
        await new Promise((resolve) => setTimeout(resolve, step.delay_ms));
        await engine.send(framesOf(step.frames ?? []));
      }
      await eventually(() => routers.on(subject).length >= scenario.output.length, 20_000);
      expect(await relay.stop()).toBe(0);
      engine.close();
      await routers.settle();
      expect(asCaptured(routers.on(subject), scenario.output)).toEqual(comparable(scenario.output));
    },
  );
});
