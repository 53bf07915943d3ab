/** A message costs no more memory or time than its bytes promise. */
import fc from 'fast-check';
import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import { readBusBatch } from '../../../src/engines/lmcache/bus-batch.ts';
import {
  MAX_CONTAINERS,
  MAX_PAIRS,
  MAX_VALUES,
  messageSizeFault,
} from '../../../src/engines/lmcache/message-size.ts';

const AT = pack(1.5);
const NO_STATUS = Buffer.from([0x80]);

/** A message whose list of events is given as bytes. */
function messageOf(events: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x93]), AT, events, NO_STATUS]);
}

function longList(count: number, filler: number): Buffer {
  const head = Buffer.from([0xdd, 0, 0, 0, 0]);
  head.writeUInt32BE(count, 1);
  return Buffer.concat([head, Buffer.alloc(count, filler)]);
}

test.each([
  ['nils', MAX_VALUES, 0xc0],
  ['maps', MAX_CONTAINERS, 0x80],
  ['lists', MAX_CONTAINERS, 0x90],
])('a message of too many %s is not unpacked', (_, count, filler) => {
  expect(readBusBatch(messageOf(longList(count, filler)))).toBe('oversize');
});

test('a map of too many pairs is not unpacked', () => {
  const head = Buffer.from([0xdf, 0, 0, 0, 0]);
  head.writeUInt32BE(MAX_PAIRS + 1, 1);
  const pairs = Buffer.alloc(2 * (MAX_PAIRS + 1), 1);
  const event = Buffer.concat([pack(['x', 1, 's']), head, pairs]);
  event[0] = 0x94;
  expect(readBusBatch(messageOf(Buffer.concat([Buffer.from([0x91]), event])))).toBe('oversize');
});

test.each([
  ['a reference', [0xd6, 0x70, 0, 0, 0, 1]],
  ['something to refer to', [0xd6, 0x69, 0, 0, 0, 1, 0x90]],
  ['an integer of any size', [0xc7, 2, 0x42, 1, 1]],
  ['an expression', [0xd4, 0x78, 0x00, 0x92, 0xa1, 0x61, 0xa1, 0x67]],
  ['a record', [0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 0x01]],
  ['a marker that does not exist', [0xc1]],
])('%s is no value of a bridge', (_, bytes) => {
  expect(messageSizeFault(Buffer.from(bytes))).toBe('msgpack');
});

test('a time is', () => {
  expect(messageSizeFault(pack(new Date(1_000_000_000_000)))).toBeNull();
});

test('whatever is packed passes, and nothing that is cut off does', () => {
  const leaf = fc.oneof(
    fc.integer(),
    fc.double(),
    fc.string({ maxLength: 300 }),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 4 }, leaf, tie('list'), tie('map')),
    list: fc.array(tie('any'), { maxLength: 40 }),
    map: fc.dictionary(fc.string(), tie('any'), { maxKeys: 40 }),
  })).any;
  fc.assert(
    fc.property(
      value,
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      (sent, at) => {
        const bytes = pack(sent);
        expect(messageSizeFault(bytes)).toBeNull();
        expect(messageSizeFault(bytes.subarray(0, Math.floor(at * bytes.length)))).toBe('msgpack');
      },
    ),
  );
});
