/** The master's admin port: recorded answers of a real one, and answers that cannot be used. */
import { expect, onTestFinished, test } from 'vitest';
import type { MasterError } from '../../../src/stores/mooncake/master.ts';
import { MasterClient } from '../../../src/stores/mooncake/master-client.ts';
import { jsonAnswer, startHttpStub } from '../../support/http-stub.ts';
import { capturesOf } from '../../support/mooncake-captures.ts';

type Answers = Parameters<typeof startHttpStub>[0];

async function clientOf(answers: Answers): Promise<MasterClient & { requests: readonly string[] }> {
  const stub = await startHttpStub(answers);
  const client = new MasterClient(`http://${stub.address}`);
  onTestFinished(() => client.stop());
  return Object.assign(client, { requests: stub.requests });
}

function recorded(name: string): NonNullable<Answers[string]> {
  const capture = capturesOf(name)[0];
  return (response) => {
    response.writeHead(capture?.decoded.status ?? 200);
    response.end(Buffer.from(capture?.frames_hex[0] ?? '', 'hex'));
  };
}

const bytes = (key: string): Buffer => Buffer.from(key);

test('a list, a query and a status as a real master answers them', async () => {
  const client = await clientOf({
    '/get_all_keys': recorded('http/get_all_keys'),
    '/batch_query_keys': recorded('http/batch_query_keys'),
    '/kv_events/status': recorded('overflow/status'),
  });
  const keys = [...(await client.list()).keys()].map((key) => Buffer.from(key).toString());
  expect(keys).toEqual(['d2', 'd3', 'd0', 'd1']);
  expect(await client.query([bytes('d0'), bytes('missing')])).toEqual([['cpu', 'disk'], []]);
  expect(client.requests).toContain('GET /batch_query_keys?keys=d0,missing');
  expect(await client.status()).toEqual({
    enabled: true,
    publishedBatches: 81,
    publishedEvents: 106,
    droppedEvents: 694,
    skippedKeylessEvents: 0,
  });
});

test('the list of a master with several tenants is empty', async () => {
  const client = await clientOf({ '/get_all_keys': recorded('tenants/http/get_all_keys') });
  expect([...(await client.list()).keys()]).toEqual([]);
});

test('an older build names the events without a key otherwise', async () => {
  const status = { enabled: false, published_batches: 0, published_events: 0, dropped_events: 0 };
  const client = await clientOf({
    '/kv_events/status': jsonAnswer({ ...status, skipped_unparsed_keys: 7 }),
  });
  expect(await client.status()).toMatchObject({ enabled: false, skippedKeylessEvents: 7 });
});

test('keys are spelled in the request so that the master reads them as they are', async () => {
  const keys = ['a@b', 'a b+c', 'é%41', '&#?=/'];
  const client = await clientOf({
    '/batch_query_keys': (response, url) => {
      const read = (url.searchParams.get('keys') ?? '').split(',');
      expect(read).toEqual(keys);
      const data = Object.fromEntries(read.map((key) => [key, { ok: true, values: [{}] }]));
      response.end(JSON.stringify({ success: true, data }));
    },
  });
  expect(await client.query(keys.map(bytes))).toEqual(keys.map(() => ['cpu']));
});

test('each class that is no memory is disk, and a held key without replicas is nowhere', async () => {
  const of = (name: string): object => ({ ok: true, error: null, values: null, [name]: [{}] });
  const data = {
    a: of('disk_values'),
    b: of('local_disk_values'),
    c: of('nof_values'),
    d: { ok: true },
    e: { ok: false, error: 'x', values: [{}] },
  };
  const client = await clientOf({ '/batch_query_keys': jsonAnswer({ success: true, data }) });
  const media = await client.query(['a', 'b', 'c', 'd', 'e'].map(bytes));
  expect(media).toEqual([['disk'], ['disk'], ['disk'], [], []]);
});

test.each<[string, string, NonNullable<Answers[string]>]>([
  ['a standby', 'status', jsonAnswer({ success: false }, 503)],
  ['text', 'bad_answer', (response) => void response.end('ok')],
  ['no data', 'bad_answer', jsonAnswer({ success: true, data: [] })],
  ['another key', 'bad_answer', jsonAnswer({ success: true, data: { b: { ok: true } } })],
  ['a key of another form', 'bad_answer', jsonAnswer({ success: true, data: { a: [] } })],
  ['a connection that ends', 'unreachable', (response) => void response.destroy()],
  [
    'another protocol',
    'unreachable',
    ({ socket }) =>
      void socket?.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      ),
  ],
])('a query answered with %s fails as %s', async (_, fault, answer) => {
  const client = await clientOf({ '/batch_query_keys': answer });
  const error = await client.query([bytes('a')]).catch((reason: MasterError) => reason);
  expect(error).toMatchObject({ code: 'KVR_MOONCAKE_MASTER', fault });
  expect((error as MasterError).message).not.toContain('=a');
});

test.each([
  ['a part of a message', { published_batches: 1.5 }],
  ['more than can be counted', { dropped_events: 1e300 }],
  ['less than nothing', { published_events: -1 }],
])('a status that counts %s fails as bad_answer', async (_, fields) => {
  const counts = { published_batches: 1, published_events: 1, dropped_events: 0 };
  const client = await clientOf({
    '/kv_events/status': jsonAnswer({ enabled: true, ...counts, ...fields }),
  });
  const error = await client.status().catch((reason: MasterError) => reason);
  expect(error).toMatchObject({ code: 'KVR_MOONCAKE_MASTER', fault: 'bad_answer' });
});
