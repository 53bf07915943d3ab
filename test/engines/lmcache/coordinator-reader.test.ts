/** Bodies of `POST /events`: the real sink's, and those that are none. */
import { expect, test } from 'vitest';
import {
  type CoordinatorFault,
  CoordinatorReader,
} from '../../../src/engines/lmcache/coordinator-reader.ts';
import {
  bodyOf,
  capturedBody,
  coordinatorCaptures,
  type WireFields,
  wireBatch,
  wireEntry,
} from '../../support/cache-batches.ts';

const read = (body: Buffer) => new CoordinatorReader().read(body);

test.each(coordinatorCaptures.map((capture) => [capture.case, capture] as const))(
  'what the real sink posts is read whole: %s',
  (_, capture) => {
    const expected = capture.decoded.payload.batches.map((batch) => ({
      instanceId: batch.instance_id,
      incarnation: batch.incarnation,
      seq: batch.seq,
      eventType: batch.event_type,
      tier: batch.tier,
      backend: batch.backend,
      shared: batch.shared,
      capacityBytes: batch.capacity_bytes,
      capacityRevision: batch.capacity_revision,
      entries: (batch.entries as (WireFields & { key: WireFields })[]).map((entry) => ({
        hashHex: entry.key.chunk_hash_hex,
        modelName: entry.key.model_name,
        kvRank: entry.key.kv_rank,
        objectGroupId: entry.key.object_group_id,
        cacheSalt: entry.key.cache_salt,
        sizeBytes: entry.size_bytes,
        tokenIds: entry.token_ids,
        tokenOffset: entry.token_offset,
      })),
    }));
    expect(read(capturedBody(capture))).toEqual(expected);
  },
);

test('what has a default there may be left out', () => {
  const least = { instance_id: 'a', incarnation: 0, seq: 1, tier: 'l2', backend: 'fs' };
  const key = { chunk_hash_hex: 'AB', model_name: 'm', kv_rank: 5 };
  expect(read(Buffer.from('{}'))).toEqual([]);
  expect(read(bodyOf({ ...least, event_type: 'store', entries: [{ key }], new_field: 1 }))).toEqual(
    [
      {
        instanceId: 'a',
        incarnation: 0,
        seq: 1,
        eventType: 'store',
        tier: 'l2',
        backend: 'fs',
        shared: false,
        capacityBytes: 0,
        capacityRevision: 0,
        entries: [
          {
            hashHex: 'ab',
            modelName: 'm',
            kvRank: 5,
            objectGroupId: 0,
            cacheSalt: '',
            sizeBytes: 0,
            tokenIds: [],
            tokenOffset: -1,
          },
        ],
      },
    ],
  );
});

const entryWith = (fields: WireFields) => wireBatch(1, { entries: [wireEntry('a', fields)] });

test.each<[string, WireFields]>([
  ['batches.0.instance_id', wireBatch(1, { instance_id: '' })],
  ['batches.0.instance_id', wireBatch(1, { instance_id: 'x'.repeat(257) })],
  ['batches.0.incarnation', wireBatch(1, { incarnation: -1 })],
  ['batches.0.incarnation', wireBatch(1, { incarnation: 2 ** 53 })],
  ['batches.0.seq', wireBatch(0)],
  ['batches.0.seq', wireBatch(1.5)],
  ['batches.0.event_type', wireBatch(1, { event_type: 'stored' })],
  ['batches.0.tier', wireBatch(1, { tier: 'all' })],
  ['batches.0.backend', wireBatch(1, { backend: '' })],
  ['batches.0.backend', wireBatch(1, { backend: null })],
  ['batches.0.shared', wireBatch(1, { shared: 1 })],
  ['batches.0.ts', wireBatch(1, { ts: -1 })],
  ['batches.0.capacity_bytes', wireBatch(1, { capacity_bytes: -1 })],
  ['batches.0.capacity_revision', wireBatch(1, { capacity_revision: '1' })],
  ['batches.0.entries', wireBatch(1, { entries: {} })],
  ['batches.0.entries', wireBatch(1, { event_type: 'config', entries: [wireEntry('a')] })],
  ['batches.0.entries.0', wireBatch(1, { entries: [null] })],
  ['batches.0.entries.0.key', wireBatch(1, { entries: [{}] })],
  ['batches.0.entries.0.key.chunk_hash_hex', entryWith({ chunk_hash_hex: 'abc' })],
  ['batches.0.entries.0.key.chunk_hash_hex', entryWith({ chunk_hash_hex: '' })],
  ['batches.0.entries.0.key.model_name', entryWith({ model_name: 'a@b' })],
  ['batches.0.entries.0.key.model_name', entryWith({ model_name: '\ud800' })],
  ['batches.0.entries.0.key.kv_rank', entryWith({ kv_rank: null })],
  ['batches.0.entries.0.key.object_group_id', entryWith({ object_group_id: -1 })],
  ['batches.0.entries.0.key.cache_salt', entryWith({ cache_salt: 'a/b' })],
  ['batches.0.entries.0.key.cache_salt', entryWith({ cache_salt: 'x'.repeat(129) })],
  ['batches.0.entries.0.size_bytes', entryWith({ size_bytes: 2 ** 47 })],
  ['batches.0.entries.0.token_ids', entryWith({ token_ids: [1, -1] })],
  ['batches.0.entries.0.token_ids', entryWith({ token_ids: 'none' })],
  ['batches.0.entries.0.token_offset', entryWith({ token_offset: -2 })],
])('%s can be wrong: %j', (at, batch) => {
  expect(read(bodyOf(batch))).toMatchObject({ reason: 'batch_shape', at });
  expect(read(bodyOf(wireBatch(1), batch))).toMatchObject({ at: at.replace('0', '1') });
});

test.each([
  ['json', Buffer.from('{"batches":')],
  ['json', Buffer.from('')],
  ['json', Buffer.from([0x22, 0xff, 0x22])],
  ['batch_shape', Buffer.from('[]')],
  ['batch_shape', Buffer.from('{"batches":7}')],
  ['batch_shape', Buffer.from('{"batches":[7]}')],
  ['oversize', Buffer.from(`{"batches":[],"x":${'['.repeat(8)}${']'.repeat(8)}}`)],
  ['oversize', Buffer.from(`{"batches":[${'{},'.repeat(700_000)}0]}`)],
  ['oversize', Buffer.from(`{"x":[${'[[],{}],'.repeat(220_000)}0]}`)],
  [
    'oversize',
    bodyOf(entryWith(Object.fromEntries(Array.from({ length: 65 }, (_, key) => [key, 0])))),
  ],
  ['oversize', bodyOf(...Array.from({ length: 10_001 }, () => 0))],
  ['oversize', bodyOf(wireBatch(1, { entries: Array.from({ length: 200_001 }, () => 0) }))],
  ['oversize', bodyOf(entryWith({ token_ids: Array.from({ length: 65_537 }, () => 0) }))],
])('a body is refused as %s', (reason, body) => {
  expect(read(body)).toMatchObject({ reason });
});

test('brackets in texts are no levels', () => {
  const [batch] = [wireBatch(1, { instance_id: `${'['.repeat(20)}\\"[` })];
  expect(read(bodyOf(batch))).toMatchObject([{ instanceId: `${'['.repeat(20)}\\"[` }]);
});

test('more lists, maps or keys than batches have are refused before anything is built of them', () => {
  const messageOf = (text: string): string => (read(Buffer.from(text)) as CoordinatorFault).message;
  expect(messageOf(`[${'[],'.repeat(700_000)}`)).toBe('more than 620002 lists and maps');
  const keys = Array.from({ length: 65 }, (_, key) => `"${key}":[]`).join();
  expect(messageOf(`{"batches":[{${keys}`)).toBe('more than 64 keys in a map');
  expect(messageOf(']'.repeat(100))).toBe('no JSON');
});

test('fields that are not known are let through, in every entry there is room for', () => {
  const more = Object.fromEntries(Array.from({ length: 50 }, (_, key) => [`new${key}`, ':,[{']));
  const entries = Array.from({ length: 3 }, (_, at) => ({ ...wireEntry(`c${at}`), ...more }));
  expect(read(bodyOf(wireBatch(1, { entries, ...more })))).toMatchObject([{ seq: 1 }]);
});
