/** A worker on the NATS plane in the test's own process, and a router that counts what it gets. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, connect, type NatsConnection } from 'nats';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { EngineStub } from './engine-stub.ts';
import { type NatsServerOptions, type NatsServerProcess, startNatsServer } from './nats-server.ts';
import { eventually } from './plane-collector.ts';
import { eventsOf } from './published-events.ts';
import { decodeEnvelope } from './scenarios.ts';

export class NatsRouter {
  /** Publish ids in order of arrival. */
  readonly ids: number[] = [];
  readonly connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.connection = connection;
    connection.subscribe('namespace.>', {
      callback: (_error, { data }) => {
        for (const { id } of eventsOf(decodeEnvelope(data).payload)) this.ids.push(Number(id));
      },
    });
  }

  /** One that comes back fast, and for ever. */
  static async start(options: ConnectionOptions): Promise<NatsRouter> {
    const reconnect = { maxReconnectAttempts: -1, reconnectTimeWait: 50, reconnectJitter: 25 };
    const router = new NatsRouter(await connect({ ...reconnect, ...options }));
    onTestFinished(() => router.connection.close());
    await router.connection.flush();
    return router;
  }

  async reaches(count: number, timeoutMs = 20_000): Promise<void> {
    if (await eventually(() => this.ids.length >= count, timeoutMs)) return;
    throw new Error(`${this.ids.length} of ${count} events have come`);
  }
}

/** A server that ends with the test. */
export async function startTestServer(options: NatsServerOptions = {}): Promise<NatsServerProcess> {
  const server = await startNatsServer(options);
  onTestFinished(() => server.stop());
  return server;
}

/** Flags of a relay between this engine and this server. */
export function natsFlags(engine: { endpoint: string }, server: { url: string }): string[] {
  const plane = ['--event-plane', 'nats', '--nats-server', server.url];
  return ['--engine-endpoint', engine.endpoint, ...plane];
}

export interface NatsTrial {
  readonly worker: Worker;
  readonly engine: EngineStub;
  /** Log lines so far, each parsed. */
  readonly logs: Record<string, unknown>[];
  /** Resolves once the server has let the worker in; fails after `timeoutMs`. */
  readonly connected: (timeoutMs?: number) => Promise<void>;
}

/** Resolves when the engine has its subscriber, whatever the server makes of the worker. */
export async function startNatsTrial(
  server: string,
  env: Readonly<Record<string, string>> = {},
): Promise<NatsTrial> {
  const engine = await EngineStub.start();
  const rig = ['--event-plane', 'nats', '--block-size', '4', '--http', '127.0.0.1:0'];
  const stop = ['--shutdown-timeout-ms', '500'];
  const config = loadConfig({
    argv: [...rig, ...stop, '--engine-endpoint', engine.endpoint, '--nats-server', server],
    env,
    readFile: (path) => readFileSync(path, 'utf8'),
    random: randomBytes,
  });
  const logs: Record<string, unknown>[] = [];
  const out = { write: (line: string) => void logs.push(JSON.parse(line)) };
  const worker = createWorker(config, {
    logger: createLogger({ level: 'debug', format: 'json', out }),
  });
  onTestFinished(async () => {
    await worker.stop();
    engine.close();
  });
  await worker.start();
  await engine.subscribed();
  const connected = async (timeoutMs = 15_000): Promise<void> => {
    if (await eventually(() => worker.status().plane.connected, timeoutMs)) return;
    throw new Error(`not connected: ${JSON.stringify(logs)}`);
  };
  return { worker, engine, logs, connected };
}
