/** Batches of LMCache's KV event stream: what a real server sent, and what none should. */
import fc from 'fast-check';
import { pack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { readStreamBatch, type StreamBatch } from '../../../src/engines/lmcache/stream-batch.ts';
import {
  batchPayload,
  framesOf,
  removedRecord,
  storedRecord,
  streamCaptures,
} from '../../support/lmcache-stream.ts';
import { fixedSeed } from '../../support/properties.ts';

interface WireBatch {
  readonly enabled: boolean;
  readonly incarnation: { readonly $int: string };
  readonly next_cursor: number;
  readonly lost: boolean;
  readonly events: readonly {
    readonly kind: string;
    readonly block_hashes: readonly { readonly $bytes: string }[];
    readonly parent_block_hash: { readonly $bytes: string } | null;
    readonly token_ids: readonly number[];
  }[];
}

const HASH = Buffer.alloc(32, 7);
const batches = streamCaptures.filter(({ decoded }) => decoded.kind === 'rpc-batch');

function hex(bytes: Uint8Array): { $bytes: string } {
  return { $bytes: Buffer.from(bytes).toString('hex') };
}

test.each(batches.map((capture) => [capture.case, capture] as const))('%s', (_, capture) => {
  const wire = capture.decoded.payload as WireBatch;
  const batch = readStreamBatch(framesOf(capture)[2] as Buffer, 'm1') as StreamBatch;
  expect(batch).toMatchObject({
    isEnabled: wire.enabled,
    incarnation: BigInt(wire.incarnation.$int),
    nextCursor: wire.next_cursor,
    isLost: wire.lost,
    faults: [],
  });
  const records = batch.records.map((record) =>
    record.kind === 'stored'
      ? {
          kind: record.kind,
          block_hashes: [hex(record.hash)],
          parent_block_hash: record.parentHash && hex(record.parentHash),
          token_ids: record.tokenIds,
        }
      : {
          kind: record.kind,
          block_hashes: record.kind === 'removed' ? record.hashes.map(hex) : [],
          parent_block_hash: null,
          token_ids: [],
        },
  );
  const fields = wire.events.map(({ kind, block_hashes, parent_block_hash, token_ids }) => {
    return { kind, block_hashes, parent_block_hash, token_ids };
  });
  expect(records).toEqual(fields);
});

test('there are captures of every kind', () => {
  expect(batches.length).toBeGreaterThan(10);
});

describe('a record that cannot be used is left out, and the others stay', () => {
  const good = storedRecord(9, HASH, null, [1, 2]);
  test.each([
    ['tokens that are none', { ...good, token_ids: [1, -1] }, 'bad_field', false],
    ['too many hashes of a store', { ...good, block_hashes: [HASH, HASH] }, 'bad_field', false],
    ['another model', { ...good, model_name: 'other' }, 'bad_field', false],
    ['no kind', { ...good, kind: 5 }, 'bad_field', true],
    ['no map', 5, 'bad_field', true],
    ['a new kind', { ...good, kind: 'moved' }, 'unknown_type', false],
    ['another medium', { ...good, medium: 'DISK' }, 'unknown_type', false],
    ['a removal of texts', { ...removedRecord(1, []), block_hashes: ['x'] }, 'bad_field', true],
    ['an empty hash', removedRecord(1, [Buffer.alloc(0)]), 'bad_field', true],
  ])('%s', (_, record, fault, isUnreadable) => {
    const payload = batchPayload({ events: [record as object, good] });
    const batch = readStreamBatch(payload, 'm') as StreamBatch;
    expect(batch.faults).toEqual([fault]);
    const kinds = batch.records.map(({ kind }) => kind);
    expect(kinds).toEqual(isUnreadable ? ['unreadable', 'stored'] : ['stored']);
  });
});

test.each([
  ['msgpack', Buffer.from([0xc1])],
  ['batch_shape', pack([1])],
  ['batch_shape', batchPayload({ next_cursor: -1 })],
  ['batch_shape', batchPayload({ incarnation: 1.5 as unknown as bigint })],
  ['batch_shape', pack({ enabled: true })],
  [
    'oversize',
    batchPayload({ events: Array.from({ length: 1025 }, () => removedRecord(1, [HASH])) }),
  ],
])('a batch that is none: %s', (fault, payload) => {
  expect(readStreamBatch(payload, 'm')).toBe(fault);
});

test('no bytes make it throw', () => {
  const [sample] = batches.map((capture) => framesOf(capture)[2] as Buffer).slice(3);
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (at, byte, end) => {
      const bytes = Buffer.from(sample as Buffer);
      bytes[at % bytes.length] = byte;
      readStreamBatch(bytes.subarray(0, 1 + (end % bytes.length)), 'm1');
    }),
    { ...fixedSeed, numRuns: 2000 },
  );
});
