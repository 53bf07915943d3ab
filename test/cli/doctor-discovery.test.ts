/** `kvrelay doctor` on discovery: registry, worker, card, other sources, routers. */
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Etcd3 } from 'etcd3';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { instanceKey } from '../../src/protocol/discovery-keys.ts';
import { sourceRecord } from '../../src/protocol/discovery-records.ts';
import { RunningWorker } from '../status/running-worker.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { etcdServerAvailable, startEtcdServer } from '../support/etcd-server.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';
import { APART, type Diagnosis, diagnose } from './diagnosis.ts';
import { temporaryFolder } from './record-process.ts';

const ENDPOINT = { namespace: 'dynamo', component: 'backend', endpoint: 'generate' };
const WORKER = 0xabcdn;

/** An engine that nobody finds at once, so that a trial takes no longer than it has to. */
let nobody: string;
beforeAll(async () => {
  nobody = `tcp://127.0.0.1:${await freePorts(1)}`;
});

function newPlace(): DiscoveryPlace {
  const place = new DiscoveryPlace();
  onTestFinished(() => place.close());
  return place;
}

function diagnosed(flags: readonly string[]): Promise<Diagnosis> {
  return diagnose(['--engine-endpoint', nobody, '--block-size', '4', ...APART, ...flags]);
}

function card(fields: Record<string, unknown> = {}, runtime: Record<string, unknown> = {}): string {
  return JSON.stringify({
    type: 'Model',
    card_json: {
      kv_cache_block_size: 4,
      runtime_config: { data_parallel_start_rank: 0, data_parallel_size: 1, ...runtime },
      ...fields,
    },
  });
}

function addCard(place: DiscoveryPlace, text = card()): () => void {
  return place.add('v1/mdc', instanceKey(ENDPOINT, WORKER), text);
}

function addSource(place: DiscoveryPlace, publisherId: number, host: string): () => void {
  const source = { endpoint: ENDPOINT, workerId: WORKER, dpRank: 0, publisherId };
  const { bucket, key, value } = sourceRecord(source, { host, engineEndpoint: nobody }, null);
  return place.add(bucket, key, value);
}

function namesIn({ directory }: DiscoveryPlace): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort((a, b) =>
    a < b ? -1 : 1,
  );
}

test('a registry with one worker and its card passes, and is left as it was', async () => {
  const place = newPlace();
  place.addWorker(WORKER);
  addCard(place);
  const before = namesIn(place);
  const found = await diagnosed(place.flags);
  expect(found.of('discovery_backend').text).toBe(`${place.directory} can be written`);
  expect(found.of('discovery_records').text).toBe('2 records are kept alive');
  expect(found.of('worker').text).toBe('worker abcd serves dynamo/backend/generate');
  expect(found.of('worker_card').text).toBe('ranks 0 to 0 in blocks of 4 tokens');
  expect(found.of('ambiguous_source').state).toBe('ok');
  expect(namesIn(place)).toEqual(before);
});

test('discovery_backend fails where there is no directory to be had; a missing one can be made', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const odd = await diagnosed(['--discovery', 'file', '--discovery-dir', join(file, 'below')]);
  expect(odd.of('discovery_backend')).toMatchObject({ state: 'fail' });
  expect(odd.of('worker').text).toBe('the registry cannot be read');
  const missing = join(folder, 'deep', 'kv');
  const later = await diagnosed(['--discovery', 'file', '--discovery-dir', missing]);
  expect(later.of('discovery_backend').text).toBe(`${missing} is not there yet and can be made`);
  expect(existsSync(missing)).toBe(false);
});

test('discovery_records warns where nobody keeps a record alive', async () => {
  const place = newPlace();
  place.addWorker(WORKER)();
  const [bucket] = ['v1/instances'] as const;
  place.add(bucket, instanceKey(ENDPOINT, WORKER), '{}');
  const [name = ''] = readdirSync(join(place.directory, bucket));
  const path = join(place.directory, bucket, name);
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(path, longAgo, longAgo);
  const found = await diagnosed(place.flags);
  expect(found.of('discovery_records')).toMatchObject({ state: 'warn' });
  expect(found.of('discovery_records').text).toMatch(/^0 records are kept alive, 1 have expired/);
  expect(found.of('worker')).toMatchObject({ state: 'fail' });
});

describe('worker', () => {
  test('fails where nobody serves the endpoint', async () => {
    const place = newPlace();
    place.addWorker(WORKER);
    const found = await diagnosed([...place.flags, '--component', 'other']);
    expect(found.of('worker').text).toBe('nobody serves dynamo/other/generate');
  });

  test('fails where several do, and lists them; told which, it passes', async () => {
    const place = newPlace();
    place.addWorker(WORKER);
    place.addWorker(0x1234n);
    const found = await diagnosed(place.flags);
    expect(found.of('worker')).toMatchObject({ state: 'fail' });
    expect(found.of('worker').text).toMatch(/several workers .*: (abcd, 1234|1234, abcd)$/);
    expect(found.of('ambiguous_source').state).toBe('skipped');
    const told = await diagnosed([...place.flags, '--worker-id', '0x1234']);
    expect(told.of('worker').state).toBe('ok');
    const wrong = await diagnosed([...place.flags, '--worker-id', '7']);
    expect(wrong.of('worker').text).toMatch(/^7 does not serve dynamo\/backend\/generate; /);
  });
});

test('worker_card fails where there is none, or it contradicts the settings', async () => {
  const place = newPlace();
  place.addWorker(WORKER);
  expect((await diagnosed(place.flags)).of('worker_card').text).toMatch(/has no model card$/);
  addCard(place, card({ kv_cache_block_size: 16 }, { data_parallel_start_rank: 2 }));
  const found = await diagnosed(place.flags);
  expect(found.of('worker_card')).toMatchObject({ state: 'fail' });
  expect(found.of('worker_card').remedy).toMatch(
    /--dp-rank.*cardRank 2.*--block-size.*cardBlockSize 16/,
  );
});

test('ambiguous_source fails for the source of somebody else, and warns of one with our mark', async () => {
  const place = newPlace();
  place.addWorker(WORKER);
  addCard(place);
  const remove = addSource(place, 5, 'another-host');
  const found = await diagnosed(place.flags);
  expect(found.of('ambiguous_source')).toMatchObject({ state: 'fail' });
  expect(found.of('ambiguous_source').text).toBe(
    'another source claims worker abcd, rank 0: routers follow neither',
  );
  const otherRank = await diagnosed([...place.flags, '--dp-rank', '1']);
  expect(otherRank.of('ambiguous_source').state).toBe('ok');
  remove();
  addSource(place, 6, hostname());
  const marked = await diagnosed(place.flags);
  expect(marked.of('ambiguous_source')).toMatchObject({ state: 'warn' });
});

test('the sources of a relay that runs are no contradiction', async () => {
  const place = newPlace();
  place.addWorker(WORKER);
  addCard(place);
  const running = await RunningWorker.start(1, ...place.flags);
  onTestFinished(() => running.stop());
  expect(await eventually(() => place.sources.length === 1, 10_000)).toBe(true);
  const [rank] = (await running.status()).ranks;
  const flags = ['--engine-endpoint', rank?.engine.endpoint ?? '', '--block-size', '4'];
  const address = new URL(running.url).host;
  const plane = ['--plane-endpoint', 'tcp://127.0.0.1:0'];
  const same = await diagnose([...flags, ...plane, ...place.flags, '--http', address]);
  expect(same.of('ambiguous_source').text).toBe('only the relay that runs claims it');
  expect(same.of('worker').state).toBe('ok');
  // Of the one that cannot be asked, only the mark tells that it is of here.
  const unasked = await diagnose([...flags, ...APART, ...place.flags]);
  expect(unasked.of('ambiguous_source')).toMatchObject({ state: 'warn' });
});

test('router says what can be seen: that none has opened the registry, or left expired sources', async () => {
  const place = newPlace();
  place.addWorker(WORKER);
  const unopened = await diagnosed(place.flags);
  expect(unopened.of('router').text).toMatch(/^no router has opened the event sources/);
  mkdirSync(join(place.directory, 'v1/event_sources'));
  expect((await diagnosed(place.flags)).of('router').state).toBe('skipped');
  const left = join(place.directory, 'v1/event_sources', 'left');
  writeFileSync(left, '{}');
  utimesSync(left, 1, 1);
  const expired = await diagnosed(place.flags);
  expect(expired.of('router').text).toMatch(/^1 event sources have expired/);
});

describe.skipIf(!etcdServerAvailable())('etcd', () => {
  test('passes where it answers, and shows the worker', async () => {
    const server = await startEtcdServer();
    onTestFinished(() => server.stop());
    const client = new Etcd3({ hosts: server.url });
    onTestFinished(() => client.close());
    await client
      .put(`v1/instances/${instanceKey(ENDPOINT, WORKER)}`)
      .value('{}')
      .exec();
    const found = await diagnosed(['--discovery', 'etcd', '--etcd-endpoints', server.url]);
    expect(found.of('discovery_backend').text).toBe(`etcd answers at ${server.url}`);
    expect(found.of('worker').text).toBe('worker abcd serves dynamo/backend/generate');
    expect(await client.getAll().keys()).toHaveLength(1);
  });

  test('fails where nobody listens, in bounded time', async () => {
    const server = nobody.replace('tcp:', 'http:');
    const startMs = performance.now();
    const flags = ['--discovery', 'etcd', '--etcd-endpoints', server, '--seconds', '2'];
    const found = await diagnosed(flags);
    expect(performance.now() - startMs).toBeLessThan(8000);
    expect(found.of('discovery_backend')).toMatchObject({ state: 'fail' });
  });
});
