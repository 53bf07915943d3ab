/** A relay in a real etcd: what stands there, and what becomes of it when its lease is lost. */
import { Etcd3 } from 'etcd3';
import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { parseLosslessJson } from '../../src/protocol/lossless-json.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { etcdServerAvailable, startEtcdServer } from '../support/etcd-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { RunProcess } from '../support/run-process.ts';
import { configOf } from '../support/worker-config.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PREFIX =
  'v1/event_sources/namespace/dynamo/component/backend/endpoint/generate/topic/kv-events/';

async function startRelay(url: string, ...flags: string[]): Promise<Worker> {
  const engine = await EngineStub.start();
  cleanups.push(() => engine.close());
  const plane = ['--event-plane', 'none', '--http', 'off', '--block-size', '4'];
  const own = ['--engine-endpoint', engine.endpoint, '--discovery', 'etcd'];
  const relay = createWorker(configOf(...plane, ...own, '--etcd-endpoints', url, ...flags), {
    logger,
  });
  cleanups.push(() => relay.stop());
  await relay.start();
  return relay;
}

function publisherIds(relay: Worker): string[] {
  return relay.status().ranks.map((rank) => Number(rank.publisher_id).toString(16));
}

describe.skipIf(!etcdServerAvailable())('a relay in etcd', () => {
  test('finds its worker, and begins a new incarnation of every rank when its lease is lost', async () => {
    const server = await startEtcdServer();
    const client = new Etcd3({ hosts: server.url });
    cleanups.push(
      () => server.stop(),
      () => client.close(),
    );
    const relay = await startRelay(server.url, '--dp-size', '2', '--engine-sockets', 'shared');
    await client.put(`v1/instances/dynamo/backend/generate/ffffffffffffffff`).value('{}');
    expect(await eventually(() => relay.ready().ready, 5000)).toBe(true);
    const sources = async (): Promise<string[]> =>
      (await client.getAll().prefix(PREFIX).keys()).map((key) => key.slice(PREFIX.length)).sort();
    const before = publisherIds(relay);
    expect(await sources()).toEqual([...before].sort());
    const values = Object.values(await client.getAll().prefix(PREFIX).strings());
    const workers = values.map(
      (value) => (parseLosslessJson(value) as { metadata: { worker: unknown } }).metadata.worker,
    );
    expect(workers).toContainEqual({ worker_id: 2n ** 64n - 1n, dp_rank: 1 });

    const { kvs } = await client.getAll().prefix(PREFIX).exec();
    await client.leaseClient.leaseRevoke({ ID: kvs[0]?.lease ?? '0' });
    const isRenewed = (): boolean =>
      relay.ready().ready && !publisherIds(relay).some((id) => before.includes(id));
    // With a lease of 30 s, its loss shows at once: what is missing is written again, and refused.
    expect(await eventually(isRenewed, 5000)).toBe(true);
    const codes = (): string[] =>
      relay.status().ranks.flatMap(({ degraded }) => degraded.map(({ code }) => code));
    const isSound = (): boolean => codes().every((code) => code === 'advertises_loopback');
    expect(await eventually(isSound, 5000)).toBe(true);
    expect(await sources()).toEqual([...publisherIds(relay)].sort());
    await relay.stop();
    expect(await client.getAll().prefix('v1/event_').keys()).toEqual([]);
  });

  test('a stop does not wait for an etcd that is frozen', async () => {
    const server = await startEtcdServer();
    cleanups.push(() => server.stop());
    const relay = await startRelay(server.url, '--worker-id', '7');
    expect(await eventually(() => relay.ready().ready, 5000)).toBe(true);
    server.kill('SIGSTOP');
    const startMs = performance.now();
    await relay.stop();
    expect(performance.now() - startMs).toBeLessThan(2500);
    server.kill('SIGCONT');
  });
});

test('without the package etcd3 the start ends with one line that says how to install it', async () => {
  const hook =
    "export async function resolve(name, context, next) { if (name === 'etcd3') throw new Error('none'); return next(name, context); }";
  const register = `import { register } from 'node:module'; register(${JSON.stringify(dataUrl(hook))});`;
  const flags = ['--block-size', '4', '--discovery', 'etcd', '--http', 'off'];
  const relay = new RunProcess(
    [
      'run',
      ...flags,
      '--plane-endpoint',
      'tcp://127.0.0.1:0',
      '--engine-endpoint',
      'tcp://127.0.0.1:1',
    ],
    { NODE_OPTIONS: `--import=${dataUrl(register)}` },
  );
  cleanups.push(() => relay.stop());
  await eventually(() => relay.logs.some(({ level }) => level === 'fatal'), 10_000);
  expect(await relay.exited()).toBe(1);
  const fatal = relay.logs.filter(({ level }) => level === 'fatal');
  expect(fatal).toHaveLength(1);
  expect(fatal[0]).toMatchObject({
    code: 'KVR_ETCD_MISSING',
    msg: expect.stringMatching(/etcd3 is not installed.*npm install etcd3@1$/) as string,
  });
});

function dataUrl(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
