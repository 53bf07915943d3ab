import fc from 'fast-check';
import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import { type BusBatch, readBusBatch } from '../../../src/engines/lmcache/bus-batch.ts';
import { ContractChecker } from '../../../src/engines/lmcache/contract-checker.ts';
import { NAME_BY_VALUE } from '../../../src/engines/lmcache/contracts.ts';

const STATUS = { lmcache: '0.5.6', bridge: '0.1.0', dropped: 0 };

function read(message: unknown): BusBatch {
  const batch = readBusBatch(pack(message));
  if (typeof batch === 'string') throw new Error(batch);
  return batch;
}

test('a message is its events and the state of the bus', () => {
  const batch = read([
    10.5,
    [['mp.request.start', 9.25, 'r1', {}]],
    {
      ...STATUS,
      dropped: 3,
      unencodable: 1,
      bus_dropped: 2,
      queue_depth: 7,
      drain_lag_s: 0.5,
      exceptions: { A: 1 },
    },
  ]);
  expect(batch.events).toEqual([
    { type: 'mp.request.start', timestamp: 9.25, sessionId: 'r1', metadata: {} },
  ]);
  expect(batch.badEvents).toBe(0);
  expect(batch.status).toEqual({
    version: '0.5.6',
    bridgeDropped: 3,
    bridgeUnencodable: 1,
    busDropped: 2,
    queueDepth: 7,
    drainLagSeconds: 0.5,
    exceptions: { A: 1 },
  });
});

test('what the state does not say is 0, and the version unknown', () => {
  const { status } = read([1.5, [], { dropped: -1, queue_depth: 'many', lmcache: null }]);
  expect(status).toMatchObject({ version: null, bridgeDropped: 0, queueDepth: 0, exceptions: {} });
});

test.each([
  ['no array', 1],
  ['too short', [1.5, []]],
  ['no time', ['now', [], STATUS]],
  ['a time that never comes', [Number.POSITIVE_INFINITY, [], STATUS]],
  ['a time of no clock', [1e300, [], STATUS]],
  ['a time before all clocks', [-1.5, [], STATUS]],
  ['events that are no list', [1.5, {}, STATUS]],
  ['a state that is no map', [1.5, [], 1]],
])('%s is a malformed message', (_, message) => {
  expect(readBusBatch(pack(message))).toBe('batch_shape');
});

test('damaged MessagePack is a malformed message', () => {
  expect(readBusBatch(pack([1.5, [], STATUS]).subarray(0, 12))).toBe('msgpack');
  expect(readBusBatch(Buffer.alloc(200_000, 0x91))).toBe('msgpack');
  expect(readBusBatch(Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff]))).toBe('msgpack');
});

test('an entry that is no event costs itself', () => {
  const good = ['mp.request.end', 1, 'r', {}];
  const bad = [
    7,
    [],
    ['x', 62, 'r', {}],
    ['x', -1, 'r', {}],
    ['x', Number.NaN, 'r', {}],
    ['x', 'late', 'r', {}],
    ['x', 1, null, {}],
    ['x', 1, 'r', []],
  ];
  const batch = read([1.5, [...bad, good], STATUS]);
  expect(batch.badEvents).toBe(bad.length);
  expect(batch.events.map(({ type }) => type)).toEqual(['mp.request.end']);
});

test('names in the state are short and few, and no count is lost', () => {
  const many = Array.from({ length: 100 }, (_, index) => [`C${index}`, 1] as const);
  const exceptions = { ['n'.repeat(1000)]: 5, ...Object.fromEntries(many) };
  const { status } = read([1.5, [], { lmcache: 'v'.repeat(1000), exceptions }]);
  expect(status.version).toBeNull();
  expect(Object.keys(status.exceptions)).toHaveLength(65);
  expect(status.exceptions).toMatchObject({ C0: 1, other: 41 });
});

test('a float that is no integer of the wire is none in an event', () => {
  const checker = new ContractChecker();
  const metadata = { num_chunks: 1e300 };
  const event = { type: 'cb.chunks.evicted', timestamp: 1, sessionId: '', metadata };
  expect(checker.check(event, '0.5.6')?.metadata).toEqual({});
  expect(checker.violations).toMatchObject([{ field: 'num_chunks', kind: 'type' }]);
});

test('integers stay exact beyond 2^53 and are plain numbers below', () => {
  const event = ['x', 1, '', { large: 2n ** 60n, small: 2n ** 40n }];
  expect(read([1.5, [event], STATUS]).events[0]?.metadata).toEqual({
    large: 2n ** 60n,
    small: 2 ** 40,
  });
});

test('whatever the metadata holds, an event of a known type leaves the checker', () => {
  const types = fc.constantFrom(...NAME_BY_VALUE.keys());
  const keys = fc.constantFrom('keys', 'device', 'total_bytes', 'records', 'samples', 'snapshot');
  const checker = new ContractChecker();
  fc.assert(
    fc.property(types, fc.dictionary(keys, fc.anything()), (type, metadata) => {
      const event = { type, timestamp: 1, sessionId: '', metadata };
      expect(checker.check(event, '0.5.6')).not.toBeNull();
    }),
  );
});
