import { describe, expect, test } from 'vitest';
import { twoPart } from '../../../src/protocol/two-part.ts';
import { RequestError, readRequest } from '../../../src/router/recovery/query.ts';
import { type QueryFields, queryBody, requestPayload } from '../../support/router-requests.ts';

const WORKER = 5726645424071529446n;
const ADDRESS = '192.0.2.2:39011';

/** Body of a stock router's query, captured. */
const CAPTURED = Buffer.from(
  '86a9776f726b65725f6964cf4f7921ac106653e6a764705f72616e6b00ae73746172745f6576656e745f6964c0' +
    'ac656e645f6576656e745f6964c0b9737570706f7274735f747265655f64756d705f6661696c6564c3' +
    'a46b696e64a87265636f76657279',
  'hex',
);

test('the test router writes the body that a stock router was seen to send', () => {
  expect(queryBody({ worker_id: WORKER }).toString('hex')).toBe(CAPTURED.toString('hex'));
  expect(queryBody({ worker_id: WORKER }, 'json').toString()).toBe(
    '{"worker_id":5726645424071529446,"dp_rank":0,"start_event_id":null,"end_event_id":null,' +
      '"supports_tree_dump_failed":true,"kind":"recovery"}',
  );
});

describe.each(['msgpack', 'json', 'absent'] as const)('a request in codec %s', (codec) => {
  const read = (fields: QueryFields, address = ADDRESS): unknown =>
    readRequest(requestPayload({ address, codec }, fields));

  test('is read with all digits of its u64', () => {
    const ids = { start_event_id: 2n ** 64n - 1n, end_event_id: 2n ** 53n + 1n };
    expect(read({ worker_id: 15216663098106425809n, dp_rank: 3, ...ids })).toEqual({
      codec: codec === 'absent' ? 'json' : codec,
      callBack: { host: '192.0.2.2', port: 39011, subject: 'a-subject' },
      query: {
        workerId: 15216663098106425809n,
        dpRank: 3,
        startEventId: 2n ** 64n - 1n,
        endEventId: 2n ** 53n + 1n,
        supportsTreeDumpFailed: true,
        kind: 'recovery',
      },
    });
  });

  test.each([
    ['status', { status: {} }],
    ['state_agent_recovery', { state_agent_recovery: { any: 'thing' } }],
  ])('of kind %s is told apart', (kind, field) => {
    expect(read({ worker_id: WORKER, kind: field })).toMatchObject({ query: { kind } });
  });

  test('has defaults for what older routers leave out', () => {
    const fields = { worker_id: 7n, dp_rank: 0 };
    const body =
      codec === 'msgpack'
        ? Buffer.from('82a9776f726b65725f696407a764705f72616e6b00', 'hex')
        : Buffer.from('{"worker_id":7,"dp_rank":0}');
    const whole = requestPayload({ address: ADDRESS, codec }, fields);
    const header = whole.subarray(24, 24 + Number(whole.readBigUInt64BE(0)));
    expect(readRequest(twoPart(header, body)).query).toEqual({
      workerId: 7n,
      dpRank: 0,
      startEventId: null,
      endEventId: null,
      supportsTreeDumpFailed: false,
      kind: 'recovery',
    });
  });

  test.each([
    ['a rank beyond u32', { worker_id: 1n, dp_rank: 2 ** 32 }],
    ['an unknown kind', { worker_id: 1n, kind: 'gossip' }],
    ['no truth value', { worker_id: 1n, supports_tree_dump_failed: 'yes' as unknown as boolean }],
    ['text for a worker', { worker_id: 'abc' as unknown as bigint }],
  ])('with %s is refused', (_, fields) => {
    expect(() => read(fields)).toThrow(RequestError);
  });
});

test('IPv6 in brackets is an address', () => {
  const payload = requestPayload({ address: '[2001:db8::1]:1' }, { worker_id: 1n });
  expect(readRequest(payload).callBack).toEqual({
    host: '2001:db8::1',
    port: 1,
    subject: 'a-subject',
  });
});

test.each([
  'localhost:80',
  '192.0.2.2',
  '192.0.2.2:0',
  '192.0.2.2:65536',
  '192.0.2:80',
  '::1:80',
  '[192.0.2.2]:80',
  '2001:db8::1:80',
  'metadata.internal:80',
  '192.0.2.2:80/x',
  '',
])('%j is no address to call back', (address) => {
  const payload = requestPayload({ address }, { worker_id: 1n });
  expect(() => readRequest(payload)).toThrow(/no IP address with a port/);
});

test.each([
  ['quic-response', 'unsupported_transport'],
  ['carrier-pigeon', 'unsupported_transport'],
])('transport %s is refused', (transport, reason) => {
  const payload = requestPayload({ address: ADDRESS, transport }, { worker_id: 1n });
  expect(() => readRequest(payload)).toThrow(expect.objectContaining({ reason }));
});

const GOOD = requestPayload({ address: ADDRESS }, { worker_id: 1n });
const HEADER = GOOD.subarray(24, 24 + Number(GOOD.readBigUInt64BE(0)));

test('a string that is never closed costs one look, however many quotes are escaped in it', () => {
  const text = `{"a":"${'\\"'.repeat(30_000)}`;
  const payload = twoPart(Buffer.from(text), Buffer.alloc(0));
  const startMs = performance.now();
  expect(() => readRequest(payload)).toThrow(/no JSON/);
  expect(performance.now() - startMs).toBeLessThan(200);
});

test.each<[string, Buffer]>([
  ['nothing', Buffer.alloc(0)],
  ['less than the lengths', GOOD.subarray(0, 23)],
  ['a cut body', GOOD.subarray(0, -1)],
  ['a byte too many', Buffer.concat([GOOD, Buffer.from([0])])],
  ['lengths that overflow', Buffer.concat([Buffer.alloc(16, 0xff), GOOD.subarray(16)])],
  ['a header that is no JSON', twoPart(Buffer.from('{"id":'), queryBody({ worker_id: 1n }))],
  ['a header that is a list', twoPart(Buffer.from('[]'), queryBody({ worker_id: 1n }))],
  ['no connection', twoPart(Buffer.from('{"payload_codec":"msgpack"}'), Buffer.alloc(0))],
  ['an unknown codec', requestPayload({ address: ADDRESS, codec: 'cbor' }, { worker_id: 1n })],
  [
    'a request stream',
    requestPayload({ address: ADDRESS, streamType: 'request' }, { worker_id: 1n }),
  ],
  ['an empty body', twoPart(HEADER, Buffer.alloc(0))],
  ['a list as body', twoPart(HEADER, Buffer.from([0x93, 1, 2, 3]))],
  [
    'two bodies',
    twoPart(HEADER, Buffer.concat([queryBody({ worker_id: 1n }), Buffer.from([0xc0])])),
  ],
  ['a list that announces 4 G items', twoPart(HEADER, Buffer.from('ddffffffff', 'hex'))],
  ['a map that announces 4 G fields', twoPart(HEADER, Buffer.from('dfffffffff', 'hex'))],
  ['a text that announces 4 GiB', twoPart(HEADER, Buffer.from('dbffffffff', 'hex'))],
  ['numbers as keys', twoPart(HEADER, Buffer.from('810101', 'hex'))],
  ['lists in lists in lists', twoPart(HEADER, Buffer.alloc(60_000, 0x91))],
  ['a float', twoPart(HEADER, Buffer.from('81a9776f726b65725f6964cb3ff0000000000000', 'hex'))],
])('%s is malformed', (_, payload) => {
  expect(() => readRequest(payload)).toThrow(
    expect.objectContaining({ constructor: RequestError }),
  );
});
