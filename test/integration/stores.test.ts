/** Stores beside a worker: listing, ranges, status, metrics, the command line, both planes. */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { unpack } from 'msgpackr';
import { connect } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker } from '../../src/worker.ts';
import { MooncakeMasterStub } from '../support/mooncake-master-stub.ts';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';
import { eventually, NatsCollector } from '../support/plane-collector.ts';
import { Clr, Rm, St, StoreTrial } from '../support/store-trial.ts';
import { configOf } from '../support/worker-config.ts';

test('a listing is filtered by source, backend, tenant and the beginning of keys', async () => {
  const trial = await StoreTrial.start();
  await trial.send(St('m@1'), St('m@2', 'disk'), St('n@1'), St('m@1', 'cpu', 't1'));
  await trial.stream(4);
  expect(await trial.listed()).toEqual(['m@1 cpu', 'm@2 disk', 'n@1 cpu', 't1/m@1 cpu']);
  expect(await trial.listed('?source=mooncake&backend=mooncake-1&tenant=t1')).toEqual([
    't1/m@1 cpu',
  ]);
  expect(await trial.listed('?prefix=m%402')).toEqual(['m@2 disk']);
  expect(await trial.listed('?source=lmcache')).toEqual([]);
  const response = await fetch(`${trial.url}/api/objects`);
  expect(response.headers.get('content-type')).toContain('application/x-ndjson');
  expect(response.headers.get('x-kvrelay-last-event-id')).toBe('4');
  expect((await response.text()).split('\n')[0]).toBe(
    '{"source":"mooncake","backend_id":"mooncake-1","tenant_id":"default","object_key":"m@1","media":["cpu"]}',
  );
});

test('ranges of events are answered over HTTP', async () => {
  const trial = await StoreTrial.start({ flags: ['--engine', 'none', '--object-buffer', '2'] });
  await trial.send(St('a'), St('b'), Rm('a'));
  await trial.stream(3);
  const ask = async (query: string): Promise<unknown> =>
    (await fetch(`${trial.url}/api/objects/events${query}`)).json();
  const publisher_id = trial.worker.status().objects?.publisher_id;
  expect(await ask('?start=2')).toEqual({
    kind: 'events',
    publisher_id,
    last_event_id: '3',
    events: trial.events.slice(1).map((event) => ({ ...event, event_id: `${event.event_id}` })),
    next_event_id: null,
  });
  expect(await ask('?start=1')).toEqual({ kind: 'snapshot', publisher_id, last_event_id: '3' });
  expect(await ask('?start=4')).toMatchObject({ kind: 'too_new' });
  expect(await ask('?start=3&end=2')).toMatchObject({ kind: 'invalid_range' });
  expect(await ask('?start=x')).toMatchObject({ error: 'bad_event_id' });
});

test('status, readiness and metrics tell of the store', async () => {
  const trial = await StoreTrial.start({ hasMaster: true });
  trial.master.held.set('a', new Set(['cpu']));
  await trial.send(St('a'));
  await trial.until(() => trial.source.objects === 1 && trial.worker.ready().ready);
  await trial.until(() => trial.source.reconciliation?.state === 'idle');
  const status = trial.worker.status();
  expect(status).toMatchObject({
    state: 'ready',
    ranks: [],
    plane: { kind: 'zmq', connected: true },
  });
  expect(trial.source).toMatchObject({
    source: 'mooncake',
    connected: true,
    suspect: false,
    degraded: [],
    last_seq: '1',
    reconciliation: { endpoint: trial.master.url },
  });
  expect(await trial.metric('kvrelay_source_objects', { source: 'mooncake' })).toBe(1);
  const labels = { source: 'mooncake', event_type: 'stored', stage: 'received' };
  expect(await trial.metric('kvrelay_source_events_total', labels)).toBe(1);
  trial.master.status = { enabled: false };
  await trial.until(() => trial.worker.status().state === 'degraded', 'a notice', 25_000);
  expect(trial.source.degraded[0]).toMatchObject({
    code: 'store_suspect',
    message: 'The master publishes no KV events',
  });
  const strict = await fetch(`${trial.url}/health/ready?strict=1`);
  expect(strict.status).toBe(503);
  expect(await strict.json()).toMatchObject({ degraded: [{ source: 'mooncake' }] });
}, 60_000);

test('without a store there are no objects', async () => {
  const worker = createWorker(
    configOf('--block-size', '4', '--event-plane', 'none', '--http', '127.0.0.1:0'),
    { logger: createLogger({ level: 'silent', format: 'json' }) },
  );
  onTestFinished(() => worker.stop());
  await worker.start();
  for (const path of ['/api/objects', '/api/objects/events?start=1']) {
    const response = await fetch(`${worker.httpUrl}${path}`);
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: 'no_store', message: expect.stringContaining('--mooncake-endpoint') as string },
    ]);
  }
  expect(worker.status()).toMatchObject({ sources: [], objects: null });
});

describe.skipIf(!natsServerAvailable())('over NATS', () => {
  test('the stream has a subject of its own, and ranges and snapshots are asked for', async () => {
    const server = await startNatsServer();
    onTestFinished(() => server.stop());
    const collector = await NatsCollector.connect(server.url);
    onTestFinished(() => collector.close());
    const master = await MooncakeMasterStub.start();
    const worker = createWorker(
      configOf(
        '--engine=none',
        '--event-plane=nats',
        `--nats-server=${server.url}`,
        `--mooncake-endpoint=${master.endpoint}`,
        '--http=off',
      ),
      { logger: createLogger({ level: 'silent', format: 'json' }) },
    );
    onTestFinished(() => worker.stop());
    await worker.start();
    await master.subscribed();
    for (const key of ['a', 'b']) await master.put(key);
    const subject = 'namespace.dynamo.component.backend.endpoint.generate.kv-objects';
    const events = (): unknown[] =>
      collector.on(subject).flatMap(({ payload }) => (unpack(payload) as { events: [] }).events);
    expect(await eventually(() => events().length === 2)).toBe(true);

    const client = await connect({ servers: server.url });
    onTestFinished(() => client.close());
    const { publisher_id } = worker.status().objects ?? { publisher_id: '' };
    const ask = async (request: object): Promise<unknown> =>
      (await client.request(`kvrelay.objects.${publisher_id}`, JSON.stringify(request))).json();
    expect(await ask({ start: '2' })).toMatchObject({
      kind: 'events',
      last_event_id: '2',
      events: [{ event_id: '2', object_key: 'b' }],
    });
    expect(await ask({ snapshot: true })).toMatchObject({
      kind: 'objects',
      last_event_id: '2',
      objects: [{ object_key: 'a' }, { object_key: 'b', media: ['cpu'] }],
      next_cursor: null,
    });
  });
});

/** Lines that the example has printed so far. */
function startExample(url: string): { readonly lines: () => Record<string, unknown>[] } {
  const program = fileURLToPath(new URL('../../examples/object-consumer.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, '--http', url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const lines = (): Record<string, unknown>[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { lines };
}

test('the example consumer takes a snapshot and follows, over a gap and a clear', async () => {
  const trial = await StoreTrial.start();
  await trial.send(St('a'), St('b'));
  await trial.stream(2);
  const example = startExample(trial.url);
  expect(await eventually(() => example.lines().length > 0)).toBe(true);
  expect(example.lines()[0]).toMatchObject({ what: 'snapshot', held: 2 });
  // Until its subscription stands, what is published is missed, and asked for with the first that comes.
  const isThere = async (): Promise<boolean> => {
    await trial.send(St(`probe-${Math.random()}`));
    return example.lines().length > 1;
  };
  for (let attempt = 0; attempt < 50 && !(await isThere()); attempt++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await trial.send(St('a', 'disk'), Rm('a'), Rm('b'));
  await trial.send(Clr());
  expect(await eventually(() => example.lines().at(-1)?.what === 'cleared')).toBe(true);
  expect(example.lines().at(-1)).toMatchObject({ held: 0 });
  expect(example.lines()).toContainEqual(
    expect.objectContaining({ what: 'stored', key: 'a', media: ['cpu', 'disk'] }),
  );
});
