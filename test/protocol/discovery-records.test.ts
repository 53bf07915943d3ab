/** Keys, file names and records against those that stock Dynamo 1.6.1 processes wrote. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  endpointSubject,
  fileNameOf,
  instanceIdOf,
  instanceKey,
  instancePrefix,
  keyOfFileName,
  sourceKey,
} from '../../src/protocol/discovery-keys.ts';
import {
  channelRecord,
  isOwnLeftover,
  queryInstanceRecord,
  readSourceClaim,
  type SourceIdentity,
  sourceRecord,
} from '../../src/protocol/discovery-records.ts';
import { parseLosslessJson, writeLosslessJson } from '../../src/protocol/lossless-json.ts';

const fra0 = { namespace: 'fra0', component: 'backend', endpoint: 'generate' };
const demo = { namespace: 'demo', component: 'backend', endpoint: 'generate' };
const mark = { host: 'node-1', engineEndpoint: 'tcp://127.0.0.1:5557' };

/** Written by a stock publisher on the file backend. */
const STOCK_SOURCE =
  '{"type":"EventSource","scope":{"kind":"endpoint","endpoint":{"namespace":"fra0","component":"backend","name":"generate"}},"topic":"kv-events","publisher_id":6181180192207100,"metadata":{"kv_state_endpoint":{"namespace":"fra0","component":"backend","name":"generate"},"worker":{"worker_id":15216663098106425809,"dp_rank":0},"publisher_id":6181180192207100,"recovery_target":{"component":"backend","endpoint":"worker_kv_query_source_15f5c029a630fc","namespace":"fra0","instance_id":15216663098106425809,"transport":{"tcp":"192.0.2.2:46755/d32c7277656db1d1/fra0/backend/worker_kv_query_source_15f5c029a630fc"},"device_type":"cuda","request_plane_codec":"msgpack"}}}';
const STOCK_SOURCE_FILE =
  'namespace%2Ffra0%2Fcomponent%2Fbackend%2Fendpoint%2Fgenerate%2Ftopic%2Fkv%2Devents%2F15f5c029a630fc';
const STOCK_CHANNEL =
  '{"type":"EventChannel","scope":{"kind":"endpoint","endpoint":{"namespace":"demo","component":"backend","name":"generate"}},"topic":"kv-events","instance_id":11256099,"transport":{"kind":"Nats","config":{"subject_prefix":"namespace.demo.component.backend.endpoint.generate"}}}';
const STOCK_INSTANCE =
  '{"type":"Endpoint","component":"backend","endpoint":"worker_kv_query_source_abc123","namespace":"demo","instance_id":5726645424071529446,"transport":{"tcp":"127.0.0.1:42011/4f7921ac106653e6/demo/backend/worker_kv_query_source_abc123"},"request_plane_codec":"msgpack"}';
const STOCK_INSTANCE_FILE =
  'demo%2Fbackend%2Fworker%5Fkv%5Fquery%5Fsource%5Fabc123%2F4f7921ac106653e6';

const stock: SourceIdentity = {
  endpoint: fra0,
  workerId: 15216663098106425809n,
  dpRank: 0,
  publisherId: 6181180192207100,
};

/** A record without what is ours alone. */
function withoutMark(value: string): unknown {
  const { kvrelay: _ours, ...rest } = parseLosslessJson(value) as Record<string, unknown>;
  return rest;
}

test('u64 ids survive JSON in both directions, and nothing else changes', () => {
  expect(writeLosslessJson(parseLosslessJson(STOCK_SOURCE) as never)).toBe(STOCK_SOURCE);
  expect(parseLosslessJson('[18446744073709551615,9007199254740991,-9007199254740993]')).toEqual([
    18446744073709551615n,
    9007199254740991,
    -9007199254740993n,
  ]);
  const strings = ['18446744073709551615', '"18446744073709551615"', '\\', '\u0000'];
  expect(parseLosslessJson(JSON.stringify(strings))).toEqual(strings);
  expect(() => parseLosslessJson('{"a":')).toThrow(SyntaxError);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      // Doubles above 2^53 are written without an exponent, so they read as what they say.
      fc.pre(!/\d{16,}/.test(text));
      expect(parseLosslessJson(text)).toEqual(JSON.parse(text));
    }),
  );
});

test('a source record is the stock one, with the mark beside it', () => {
  const tcp = '192.0.2.2:46755/d32c7277656db1d1/fra0/backend/worker_kv_query_source_15f5c029a630fc';
  const record = sourceRecord(stock, mark, { transport: { tcp }, codec: 'msgpack' });
  const expected = parseLosslessJson(STOCK_SOURCE) as {
    metadata: { recovery_target: { device_type?: string } };
  };
  // Optional, and not known to a relay.
  delete expected.metadata.recovery_target.device_type;
  expect(withoutMark(record.value)).toEqual(expected);
  expect(record.value).toContain('"worker_id":15216663098106425809');
  expect(record.bucket).toBe('v1/event_sources');
  expect(fileNameOf(record.key)).toBe(STOCK_SOURCE_FILE);
});

test('a source without a recovery address has no recovery target: it is live-only', () => {
  const { value } = sourceRecord(stock, mark, null);
  expect(value).not.toContain('recovery_target');
});

test('channel and query instance are the stock ones', () => {
  const source = { ...stock, endpoint: demo, publisherId: 11256099 };
  const channel = channelRecord(source, mark, { kind: 'nats' });
  expect(withoutMark(channel.value)).toEqual(parseLosslessJson(STOCK_CHANNEL));
  expect(channel.key).toBe(sourceKey(demo, 11256099));
  const direct = channelRecord(source, mark, { kind: 'zmq', endpoint: 'tcp://192.0.2.2:34445' });
  expect(withoutMark(direct.value)).toMatchObject({
    transport: { kind: 'Zmq', config: { endpoint: 'tcp://192.0.2.2:34445' } },
  });

  const queried = { ...source, workerId: 5726645424071529446n, publisherId: 0xabc123 };
  const instance = queryInstanceRecord(queried, mark, {
    transport: {
      tcp: '127.0.0.1:42011/4f7921ac106653e6/demo/backend/worker_kv_query_source_abc123',
    },
    codec: 'msgpack',
  });
  expect(withoutMark(instance.value)).toEqual(parseLosslessJson(STOCK_INSTANCE));
  expect(fileNameOf(instance.key)).toBe(STOCK_INSTANCE_FILE);
});

const STOCK_LOAD_FILE =
  'namespace%2Fns%2Fcomponent%2Fbackend%2Fendpoint%2Fgenerate%2Ftopic%2Fkv%5Fmetrics%2F17fc6795ed03c7';
const STOCK_LOAD =
  '{"type":"EventChannel","scope":{"kind":"endpoint","endpoint":{"namespace":"ns","component":"backend","name":"generate"}},"topic":"kv_metrics","instance_id":6751446291514311,"transport":{"kind":"Zmq","config":{"endpoint":"tcp://192.0.2.2:41681"}}}';

test('the channel of worker load is that of a stock worker', () => {
  const endpoint = { namespace: 'ns', component: 'backend', endpoint: 'generate' };
  const load = { endpoint, workerId: 7n, dpRank: 0, publisherId: 6751446291514311 };
  const transport = { kind: 'zmq', endpoint: 'tcp://192.0.2.2:41681' } as const;
  const { bucket, key, value } = channelRecord(load, mark, transport, 'kv_metrics');
  expect(bucket).toBe('v1/event_channels');
  expect(fileNameOf(key)).toBe(STOCK_LOAD_FILE);
  expect(withoutMark(value)).toEqual(parseLosslessJson(STOCK_LOAD));
});

test('file names are exact: each key has one, and no other name is a key', () => {
  expect(keyOfFileName(STOCK_SOURCE_FILE)).toBe(sourceKey(fra0, 6181180192207100));
  for (const wrong of ['.tmp_0123456789abcdef', 'a-b', 'a%2f', 'a%', 'a%41', '%FF']) {
    expect(keyOfFileName(wrong)).toBeNull();
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (key) => {
      expect(keyOfFileName(fileNameOf(key))).toBe(key);
    }),
  );
});

test('names outside of letters, digits, - and _ are escaped in source keys and subjects only', () => {
  const odd = { namespace: 'a.b', component: 'c d', endpoint: 'é-_' };
  expect(sourceKey(odd, 255)).toBe(
    'namespace/a%2Eb/component/c%20d/endpoint/%C3%A9-_/topic/kv-events/ff',
  );
  expect(endpointSubject(odd, 'kv-events')).toBe(
    'namespace.a%2Eb.component.c%20d.endpoint.%C3%A9-_.kv-events',
  );
  expect(instanceKey(odd, 255n)).toBe('a.b/c d/é-_/ff');
});

test('the worker id is the hex at the end of an instance’s key', () => {
  const prefix = instancePrefix(demo);
  expect(instanceIdOf(instanceKey(demo, 2n ** 64n - 1n), prefix)).toBe(2n ** 64n - 1n);
  for (const key of [
    'demo/backend/generate/',
    'demo/backend/generate/xyz',
    'demo/backend/other/ff',
  ]) {
    expect(instanceIdOf(key, prefix)).toBeNull();
  }
});

test('a claim is read where a router would take it, exactly', () => {
  expect(readSourceClaim(STOCK_SOURCE, fra0)).toEqual({
    publisherId: 6181180192207100n,
    workerId: 15216663098106425809n,
    dpRank: 0,
    mark: null,
  });
  expect(readSourceClaim(sourceRecord(stock, mark, null).value, fra0)?.mark).toEqual(mark);
});

test.each([
  ['another endpoint', STOCK_SOURCE, demo],
  ['half a record', STOCK_SOURCE.slice(0, 200), fra0],
  ['another type', STOCK_SOURCE.replace('EventSource', 'EventChannel'), fra0],
  ['another topic', STOCK_SOURCE.replace('kv-events', 'kv-objects'), fra0],
  [
    'two publisher ids',
    STOCK_SOURCE.replace('"publisher_id":6181180192207100', '"publisher_id":1'),
    fra0,
  ],
  [
    'a worker id beyond u64',
    STOCK_SOURCE.replaceAll('15216663098106425809', '115216663098106425809'),
    fra0,
  ],
  ['a fraction for a rank', STOCK_SOURCE.replace('"dp_rank":0', '"dp_rank":0.5'), fra0],
  ['no object', '7', fra0],
])('%s is no claim', (_, text, endpoint) => {
  expect(readSourceClaim(text, endpoint)).toBeNull();
});

test('own leftovers are those of the same host, engine, worker and rank in another life', () => {
  const now = { ...stock, publisherId: 7 };
  const left = (changes: Partial<SourceIdentity>, by = mark): boolean =>
    isOwnLeftover(sourceRecord({ ...stock, ...changes }, by, null).value, now, mark);
  expect(left({})).toBe(true);
  expect(isOwnLeftover(channelRecord(stock, mark, { kind: 'nats' }).value, now, mark)).toBe(true);
  expect(left({ publisherId: 7 })).toBe(false);
  expect(left({ dpRank: 1 })).toBe(false);
  expect(left({ workerId: 15216663098106425808n })).toBe(false);
  expect(left({}, { ...mark, host: 'node-2' })).toBe(false);
  expect(left({}, { ...mark, engineEndpoint: 'tcp://127.0.0.1:5558' })).toBe(false);
  expect(isOwnLeftover(STOCK_SOURCE, now, mark)).toBe(false);
  expect(isOwnLeftover('{"kvrelay":5}', now, mark)).toBe(false);
  expect(isOwnLeftover('{', now, mark)).toBe(false);
});
