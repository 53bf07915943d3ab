/** The channel record of worker load in the file registry: when it stands, and what of it is left behind. */
import { hostname } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { channelRecord } from '../../src/protocol/discovery-records.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { servePage, vllmPage } from '../support/engine-page.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';

const ENDPOINT = { namespace: 'dynamo', component: 'backend', endpoint: 'generate' };

interface Rig {
  readonly place: DiscoveryPlace;
  readonly engine: EngineStub;
  readonly start: (...flags: string[]) => Promise<Worker>;
}

async function makeRig(): Promise<Rig> {
  const place = new DiscoveryPlace();
  const engine = await EngineStub.start();
  onTestFinished(() => {
    engine.close();
    place.close();
  });
  const url = await servePage((_, response) => response.end(vllmPage({ 0: 0.25 }, '400')));
  const own = ['--block-size', '4', '--http', 'off', '--plane-endpoint', 'tcp://127.0.0.1:0'];
  const start = async (...flags: string[]): Promise<Worker> => {
    const given = ['--engine-endpoint', engine.endpoint, '--engine-metrics', url, ...place.flags];
    const logger = createLogger({ level: 'silent', format: 'json' });
    const worker = createWorker(configOf(...own, ...given, ...flags), { logger });
    onTestFinished(() => worker.stop());
    await worker.start();
    return worker;
  };
  return { place, engine, start };
}

function loadChannels(place: DiscoveryPlace): { topic: string }[] {
  const values = [...place.records('v1/event_channels').values()];
  return values
    .map((value) => JSON.parse(value) as { topic: string })
    .filter(({ topic }) => topic === 'kv_metrics');
}

test('it stands with the worker, names the plane of the load, and goes with the relay', async () => {
  const { place, start } = await makeRig();
  const worker = await start('--worker-id', '7');
  expect(await eventually(() => loadChannels(place).length === 1)).toBe(true);
  const load = worker.status().worker_load;
  expect(loadChannels(place)[0]).toMatchObject({
    type: 'EventChannel',
    scope: { kind: 'endpoint', endpoint: { namespace: 'dynamo', name: 'generate' } },
    instance_id: Number(load?.publisher_id),
    transport: { kind: 'Zmq', config: { endpoint: load?.plane_endpoint } },
  });
  await worker.stop();
  expect(loadChannels(place)).toEqual([]);
});

test('with auto it waits for the worker, and follows it', async () => {
  const { place, start } = await makeRig();
  const worker = await start();
  const removeWorker = place.addWorker(5n);
  expect(await eventually(() => loadChannels(place).length === 1)).toBe(true);
  removeWorker();
  expect(await eventually(() => loadChannels(place).length === 0)).toBe(true);
  place.addWorker(6n);
  expect(await eventually(() => loadChannels(place).length === 1)).toBe(true);
  expect(loadChannels(place)[0]).toMatchObject({ kvrelay: { worker_id: 6 } });
  expect(worker.status().ranks[0]?.worker_id).toBe('6');
});

test('what an earlier life of the relay left there goes, and nothing else', async () => {
  const { place, engine, start } = await makeRig();
  const left = { endpoint: ENDPOINT, workerId: 7n, dpRank: 0, publisherId: 4711 };
  const mark = { host: hostname(), engineEndpoint: engine.endpoint };
  const transport = { kind: 'zmq', endpoint: 'tcp://127.0.0.1:1' } as const;
  const others = { ...left, workerId: 8n, publisherId: 4712 };
  for (const source of [left, others]) {
    const { bucket, key, value } = channelRecord(source, mark, transport, 'kv_metrics');
    place.add(bucket, key, value);
  }
  const worker = await start('--worker-id', '7');
  const own = Number(worker.status().worker_load?.publisher_id);
  const ids = (): unknown[] =>
    loadChannels(place).map((record) => (record as { instance_id?: unknown }).instance_id);
  expect(await eventually(() => ids().includes(own) && ids().length === 2)).toBe(true);
  expect(new Set(ids())).toEqual(new Set([own, 4712]));
});
