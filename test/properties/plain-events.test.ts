/**
 * The kernel's reader of plain events against the readers in TypeScript: one event, well-formed or not,
 * must come to the same from both.
 */
import * as fc from 'fast-check';
import { Packr } from 'msgpackr';
import { expect, test } from 'vitest';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { DecodeFault } from '../../src/engines/decode-fault.ts';
import { readArrayEvent } from '../../src/engines/event-array.ts';
import { readMapEvent } from '../../src/engines/event-map.ts';
import { MsgpackReader } from '../../src/engines/msgpack-reader.ts';
import { PlainEventReader } from '../../src/engines/plain-event-reader.ts';
import { arena } from '../../src/kernel/arena.ts';
import type { Compat } from '../../src/protocol/compat.ts';
import type { RawEvent } from '../../src/protocol/native-batch.ts';
import { fixedSeed } from '../support/properties.ts';

const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });
const COMPATS: readonly Compat[] = ['strict', 'safe'];
/** Their memory is the kernel's for good. */
const READERS = { strict: new MsgpackReader('strict'), safe: new MsgpackReader('safe') };
const plainReader = new PlainEventReader();
const RUNS = { ...fixedSeed, numRuns: fixedSeed.numRuns * 20 };

/** Shapes that every field is tried with, beside its own. */
const ODD = fc.oneof(
  fc.constantFrom<unknown>(null, 0, 1, -1, 127, 128, 255, 256, 2 ** 31, 2 ** 32 - 1, 2 ** 32),
  fc.constantFrom<unknown>(2n ** 64n - 1n, -(2n ** 63n), true, 1.5),
  fc.constantFrom('', 'GPU', 'LOCAL', 'REMOTE', 'a text that nobody registered', 'full_attention'),
  fc.constantFrom<unknown>(
    [],
    [null],
    [[]],
    [[1]],
    ['a'],
    [1, 2],
    [
      [1, 2],
      [3, 4],
    ],
  ),
  fc.constantFrom<unknown>({}, { cache_salt: 'a' }, [Buffer.alloc(7)]),
  fc.constantFrom(Buffer.alloc(0), Buffer.from('GPU'), Buffer.alloc(8, 7), Buffer.alloc(32, 9)),
);
const hash = fc.oneof(
  { weight: 60, arbitrary: fc.bigInt(0n, 2n ** 64n - 1n) },
  { weight: 20, arbitrary: fc.integer({ min: -(2 ** 31), max: 2 ** 31 }) },
  { weight: 1, arbitrary: ODD },
);
const hashes = fc.array(hash, { maxLength: 20 });
const token = fc.oneof({ weight: 9, arbitrary: fc.nat(200_000) }, { weight: 1, arbitrary: ODD });
const tokens = fc.oneof(
  { weight: 5, arbitrary: fc.array(fc.nat(200_000), { maxLength: 40 }) },
  { weight: 1, arbitrary: fc.array(token, { maxLength: 20 }) },
  { weight: 2, arbitrary: fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 20 }) },
);

/** A field's own values mostly. */
function mostly(own: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 40, arbitrary: own }, { weight: 1, arbitrary: ODD });
}
const nilOr = (...values: unknown[]): fc.Arbitrary<unknown> =>
  mostly(fc.constantFrom(null, ...values));

const tag = mostly(fc.constantFrom('BlockStored', 'BlockRemoved', 'AllBlocksCleared', 'Ignored'));
const medium = nilOr('GPU', 'CPU', 'cpu', 'DISK');
const group = nilOr(0, 1, 2 ** 32 - 1);
const kind = nilOr('full_attention', 'mamba', 'sliding_window');
const extraKeys = nilOr([], [null, null], [[], null], [['a']]);
const tail = [group, kind, nilOr(4096), nilOr('LOCAL', 'REMOTE'), nilOr(), nilOr()];
const parent = mostly(fc.oneof(fc.constant(null), hash));
const stored = [mostly(hashes), parent, mostly(tokens), nilOr(4, 16), nilOr(0, 3), medium];

const arrayEvent = fc
  .tuple(
    tag,
    fc.oneof(
      fc.tuple(...stored, nilOr(), extraKeys, ...tail),
      fc.tuple(mostly(hashes), medium, ...tail),
    ),
    fc.nat(15),
  )
  .map(([name, fields, length]) => [name, ...fields].slice(0, length));

const FIELDS: Record<string, fc.Arbitrary<unknown>> = {
  type: tag,
  block_hashes: mostly(hashes),
  parent_block_hash: parent,
  token_ids: mostly(tokens),
  block_size: nilOr(4, 16),
  lora_id: nilOr(0, 3),
  medium,
  lora_name: nilOr(),
  extra_keys: extraKeys,
  cache_salt: nilOr(),
  block_mm_infos: nilOr(),
  group_idx: group,
  kv_cache_spec_kind: kind,
  kv_cache_spec_sliding_window: nilOr(4096),
  locality: nilOr('LOCAL'),
  ownership: nilOr(),
  session_id: nilOr(),
  block_hash: ODD,
};
const NEEDED = ['type', 'block_hashes', 'token_ids', 'block_size'];
const mapEvent = fc
  .tuple(
    fc.record(FIELDS),
    fc.subarray(Object.keys(FIELDS), { minLength: 0 }),
    fc.boolean(),
    fc.array(fc.constantFrom(...Object.keys(FIELDS)), { maxLength: 2 }),
  )
  .map(([values, names, isWhole, repeated]) =>
    pairsOf(
      [...(isWhole ? NEEDED : []), ...names, ...repeated].map((name) => [name, values[name]]),
    ),
  );

/** A map with equal keys cannot be packed as an object. */
class Pairs {
  readonly pairs: readonly (readonly [string, unknown])[];
  constructor(pairs: readonly (readonly [string, unknown])[]) {
    this.pairs = pairs;
  }
}
function pairsOf(pairs: [string, unknown][]): Pairs {
  return new Pairs(pairs);
}

function bytesOf(event: unknown): Buffer {
  if (!(event instanceof Pairs)) return packr.pack(event);
  const parts = event.pairs.flatMap(([key, value]) => [packr.pack(key), packr.pack(value)]);
  const { length } = event.pairs;
  const head = length < 16 ? [0x80 | length] : [0xde, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), ...parts]);
}

interface Taken {
  readonly event: RawEvent;
  /** Where the next event would begin. */
  readonly end: number;
}

/** The event as the readers in TypeScript take it, or the fault it costs. */
function slowly(bytes: Buffer, compat: Compat): Taken | string {
  const reader = READERS[compat];
  reader.open(bytes);
  try {
    const event = reader.isMap() ? readMapEvent(reader) : readArrayEvent(reader);
    return { event, end: reader.position };
  } catch (fault) {
    if (fault instanceof DecodeFault) return fault.kind;
    throw fault;
  }
}

function plainly(bytes: Buffer, compat: Compat): Taken | null {
  const reader = READERS[compat];
  reader.open(bytes);
  const out: RawEvent[] = [];
  const taken = plainReader.read(reader, 1, out);
  expect(out).toHaveLength(taken);
  if (taken === 0) {
    expect(reader.position).toBe(0);
    return null;
  }
  return { event: out[0] as RawEvent, end: reader.position };
}

function shown({ event, end }: Taken): Record<string, unknown> {
  const { blockHashes, tokens: list, parentLow, parentHigh, hasParent, ...rest } = event;
  return {
    ...rest,
    end,
    blockHashes: blockHashes?.toBigInts() ?? null,
    tokens: list === null ? null : Array.from({ length: list.length }, (_, at) => list.at(at)),
    parent: hasParent ? [parentLow, parentHigh] : null,
  };
}

/** Whether the kernel took it; where it did, the outcome was the same. */
function compare(bytes: Buffer, compat: Compat): boolean {
  arena.reset();
  const plain = plainly(bytes, compat);
  if (plain === null) return false;
  const slow = slowly(bytes, compat);
  if (typeof slow === 'string') throw new Error(`the kernel took what is ${slow}`);
  expect(shown(plain)).toEqual(shown(slow));
  return true;
}

test.each(COMPATS)('what the kernel takes as plain, the readers take alike (%s)', (compat) => {
  let taken = 0;
  fc.assert(
    fc.property(fc.oneof(arrayEvent, mapEvent), (event) => {
      if (compare(bytesOf(event), compat)) taken++;
    }),
    RUNS,
  );
  expect(taken).toBeGreaterThan(RUNS.numRuns / 20);
});

test.each(COMPATS)(
  'bytes that were changed or cut off are taken alike or not at all (%s)',
  (compat) => {
    const change = fc.tuple(
      fc.nat(200),
      fc.oneof(fc.nat(255), fc.constantFrom(0xc0, 0x90, 0xdc, 0xdd)),
    );
    fc.assert(
      fc.property(
        fc.oneof(arrayEvent, mapEvent),
        fc.array(change, { maxLength: 2 }),
        fc.option(fc.nat(200)),
        (event, changes, cut) => {
          const bytes = bytesOf(event);
          for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
          const end = cut === null ? bytes.length : cut % bytes.length;
          compare(bytes.subarray(0, end), compat);
        },
      ),
      RUNS,
    );
  },
);

test('plain and other events of one batch come in their order', () => {
  const plain = (first: number): unknown => ['BlockRemoved', [first], 'GPU'];
  const other = (first: number): unknown => ['BlockRemoved', [first], Buffer.from('GPU')];
  const events = [plain(1), other(2), other(3), plain(4), plain(5), ['Ignored'], other(6)];
  const many = Array.from({ length: 3000 }, (_, at) => plain(at + 7));
  arena.reset();
  const read = new BatchReader({ compat: 'safe', engine: 'vllm' }).read(
    packr.pack([0, [...events, ...many], 0]),
    0,
  );
  if (typeof read === 'string') throw new Error(read);
  const hashesOrType = read.events.flatMap(({ type, blockHashes }): unknown[] =>
    blockHashes === null ? [type] : blockHashes.toBigInts(),
  );
  expect(hashesOrType).toEqual([
    1n,
    2n,
    3n,
    4n,
    5n,
    'ignored',
    6n,
    ...many.map((_, at) => BigInt(at + 7)),
  ]);
});

/** Hashes of full width, signed and not, small ones, and digests as bytes. */
const anyHash = fc.oneof(
  { weight: 8, arbitrary: fc.bigInt(2n ** 63n, 2n ** 64n - 1n) },
  { weight: 2, arbitrary: fc.bigInt(-(2n ** 63n), -(2n ** 62n)) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(1, 2 ** 31, Buffer.alloc(32, 9)) },
);
const removeTail = fc.constantFrom<unknown[]>(
  [],
  ['GPU'],
  ['CPU'],
  ['GPU', 1],
  ['GPU', 1, 'mamba'],
);
const arrayRemoves = fc
  .tuple(fc.array(anyHash, { minLength: 1, maxLength: 30 }), removeTail)
  .map(([all, rest]) => all.map((one) => ['BlockRemoved', [one], ...rest]));
const mapRemoves = fc
  .tuple(fc.array(anyHash, { minLength: 1, maxLength: 10 }), nilOr('GPU', 'CPU'))
  .map(([all, where]) =>
    all.map((one) =>
      pairsOf([
        ['type', 'BlockRemoved'],
        ['block_hashes', [one]],
        ['medium', where],
      ]),
    ),
  );

/** As many events as the engine has sent, each as it would be alone. */
function oneByOne(events: readonly RawEvent[]): unknown[] {
  return events.flatMap((event) => {
    const { end: _, eventCount, blockHashes, ...rest } = shown({ event, end: 0 });
    if (eventCount === 1) return [{ ...rest, blockHashes }];
    expect(blockHashes).toHaveLength(eventCount as number);
    return (blockHashes as bigint[]).map((one) => ({ ...rest, blockHashes: [one] }));
  });
}

test.each(COMPATS)('removes that are read as one are those that were sent (%s)', (compat) => {
  let joined = 0;
  const reader = new BatchReader({ compat, engine: 'vllm' });
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          arrayRemoves,
          mapRemoves,
          arrayEvent.map((event) => [event]),
        ),
      ),
      (runs) => {
        const all = runs.flat().map(bytesOf);
        const alone = all.map((bytes) => {
          arena.reset();
          const slow = slowly(bytes, compat);
          return typeof slow === 'string' ? slow : oneByOne([slow.event])[0];
        });
        fc.pre(!alone.some((event) => typeof event === 'string'));
        arena.reset();
        const head = Buffer.from([0x93, 0, 0xdc, all.length >> 8, all.length & 255]);
        const read = reader.read(Buffer.concat([head, ...all, Buffer.from([0])]), 0);
        if (typeof read === 'string') throw new Error(read);
        expect(oneByOne(read.events)).toEqual(alone);
        joined += read.events.filter(({ eventCount }) => eventCount > 1).length;
      },
    ),
    RUNS,
  );
  expect(joined).toBeGreaterThan(RUNS.numRuns / 20);
});

test('a remove that is cut off behind others like it costs what it cost alone', () => {
  const whole = packr.pack([
    0,
    [1, 2, 3].map((at) => ['BlockRemoved', [2n ** 63n + BigInt(at)]]),
    0,
  ]);
  for (let end = 0; end < whole.length; end++) {
    arena.reset();
    const read = new BatchReader({ compat: 'safe', engine: 'vllm' }).read(
      whole.subarray(0, end),
      0,
    );
    expect(read).toBe('msgpack');
  }
});
