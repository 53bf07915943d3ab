/**
 * Bytes of released engines, through the reader and through the whole pipeline, in safe.
 *
 * What the reader should make of a message is worked out here from the capture's JSON and the engines'
 * field tables; what routers should see, from the same case of another version.
 */
import { isUtf8 } from 'node:buffer';
import { pack, unpack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { isPositionBlind, pythonTupleHash } from '../../src/engines/sglang-legacy.ts';
import { arena } from '../../src/kernel/arena.ts';
import { u64Of as wordsToBigInt } from '../../src/kernel/u64-list.ts';
import { totalOf } from '../../src/metrics/counts.ts';
import type {
  DroppedEvents,
  EventFault,
  NativeBatch,
  RawEvent,
} from '../../src/protocol/native-batch.ts';
import { batch, batchFrames, tokensFrom } from '../support/batches.ts';
import { framesOf, InProcessRelay } from '../support/in-process-relay.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from '../support/scenarios.ts';
import { readJsonLines } from '../support/vectors.ts';

type Engine = 'vllm' | 'sglang' | 'trtllm';
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

interface Capture {
  readonly case: string;
  readonly frames_hex: string[];
  readonly decoded: {
    readonly kind: string;
    readonly payload?: [number, Json[], ...(number | null)[]];
  };
}

/** Each file with the versions of its engine that write events as arrays, or as maps. */
const FILES: readonly { engine: Engine; file: string; form: 'arrays' | 'maps' }[] = [
  { engine: 'vllm', file: 'vllm-0.9.0', form: 'arrays' },
  { engine: 'vllm', file: 'vllm-0.9.2', form: 'arrays' },
  { engine: 'vllm', file: 'vllm-0.10.2', form: 'arrays' },
  { engine: 'vllm', file: 'vllm-0.17.0', form: 'arrays' },
  { engine: 'vllm', file: 'vllm-0.22.0', form: 'arrays' },
  { engine: 'vllm', file: 'vllm-0.24.0', form: 'maps' },
  { engine: 'vllm', file: 'vllm-0.26.0', form: 'maps' },
  { engine: 'vllm', file: 'vllm-0.33.0', form: 'maps' },
  { engine: 'sglang', file: 'sglang-0.4.6.post5', form: 'arrays' },
  { engine: 'sglang', file: 'sglang-0.4.8', form: 'arrays' },
  { engine: 'sglang', file: 'sglang-0.5.9', form: 'arrays' },
  { engine: 'sglang', file: 'sglang-0.5.17', form: 'arrays' },
  { engine: 'sglang', file: 'sglang-0.5.20', form: 'maps' },
  { engine: 'sglang', file: 'sglang-0.5.23', form: 'maps' },
  { engine: 'trtllm', file: 'trtllm-dynamo-bridge-1.6.1', form: 'maps' },
];

function captures(file: string): Capture[] {
  return readJsonLines<Capture>(`engines/${file}.jsonl`);
}

function liveCaptures(file: string): Capture[] {
  return captures(file).filter(({ decoded }) => decoded.kind === 'live');
}

function payloadOf(file: string, name: string): Buffer {
  const capture = captures(file).find((one) => one.case === name);
  return framesOf(capture?.frames_hex ?? [])[2] as Buffer;
}

function read(engine: Engine, payload: Uint8Array): NativeBatch {
  arena.reset();
  const outcome = new BatchReader({ compat: 'safe', engine }).read(payload, 0);
  if (typeof outcome === 'string') throw new Error(`no batch: ${outcome}`);
  return outcome;
}

function safeRelay(engine: Engine): InProcessRelay {
  return new InProcessRelay(pipelineConfigOf(PLAIN_SETTINGS, 'safe'), undefined, engine);
}

/** Positions of the array form; the map form has the same names and some more. */
const POSITIONS: Readonly<Record<string, readonly string[]>> = {
  BlockStored: [
    'type',
    'block_hashes',
    'parent_block_hash',
    'token_ids',
    'block_size',
    'lora_id',
    'medium',
    'lora_name',
    'extra_keys',
    'group_idx',
    'kv_cache_spec_kind',
    'kv_cache_spec_sliding_window',
  ],
  BlockRemoved: ['type', 'block_hashes', 'medium', 'group_idx'],
  AllBlocksCleared: ['type'],
};

function namedFields(event: Json): Record<string, Json> {
  if (!Array.isArray(event)) return event as Record<string, Json>;
  const names = POSITIONS[event[0] as string] ?? [];
  expect(event.length).toBeLessThanOrEqual(names.length);
  return Object.fromEntries(event.map((value, position) => [names[position], value]));
}

function bytesOf(value: Json): Buffer | null {
  if (typeof value !== 'object' || value === null || !('$bytes' in value)) return null;
  return Buffer.from(value.$bytes as string, 'hex');
}

/** A hash as u64: digests by their last 8 bytes, integers by two's complement. */
function u64Of(value: Json): bigint {
  const bytes = bytesOf(value);
  if (bytes !== null) return bytes.readBigUInt64BE(bytes.length - 8);
  const integer = typeof value === 'number' ? value : (value as { $int: string }).$int;
  return BigInt.asUintN(64, BigInt(integer));
}

function tokensOf(tokenIds: Json[]): { tokens: number[]; isEagle: boolean } {
  if (!Array.isArray(tokenIds[0])) return { tokens: tokenIds as number[], isEagle: false };
  const pairs = tokenIds as [number, number][];
  const tokens = [...pairs.map(([first]) => first), pairs.at(-1)?.[1] as number];
  return { tokens, isEagle: true };
}

/** Texts a block as `text` or `text@` (it came with an offset); null where no block has any. */
function extraKeyTexts(extraKeys: Json[] | null): string[][] | null {
  const texts = (extraKeys ?? []).map((keys) =>
    ((keys ?? []) as Json[]).flatMap((key) => {
      if (typeof key === 'string') return [key];
      if (Array.isArray(key) && typeof key[0] === 'string') return [`${key[0]}@`];
      const bytes = bytesOf(key);
      return bytes !== null && isUtf8(bytes) ? [bytes.toString()] : [];
    }),
  );
  return texts.some((keys) => keys.length > 0) ? texts : null;
}

/** What no router could tell apart: nil, and bytes that are no text. */
function hasUnsupportedKey(extraKeys: Json[] | null): boolean {
  return (extraKeys ?? []).some((keys) =>
    ((keys ?? []) as Json[]).some((key) => {
      const bytes = bytesOf(key);
      return key === null || (bytes !== null && !isUtf8(bytes));
    }),
  );
}

function mmHashesOf(infos: Json[] | null): (bigint[] | null)[] | null {
  if (infos === null) return null;
  return (infos as ({ mm_objects: { mm_hash: Json; offsets: Json[] }[] } | null)[]).map((info) => {
    if (info === null) return null;
    expect(info.mm_objects.every(({ offsets }) => offsets.length === 0)).toBe(true);
    return info.mm_objects.map((object) => u64Of(object.mm_hash));
  });
}

const TYPES: Readonly<Record<string, string>> = {
  BlockStored: 'stored',
  BlockRemoved: 'removed',
  AllBlocksCleared: 'cleared',
};

function expectedEvent(event: Json): Record<string, unknown> {
  const field = namedFields(event);
  const hashes = field.block_hashes as Json[] | undefined;
  const parent = field.parent_block_hash ?? null;
  const tokenIds = field.token_ids as Json[] | undefined;
  const extraKeys = (field.extra_keys ?? null) as Json[] | null;
  return {
    type: TYPES[field.type as string],
    blockHashes: hashes?.map(u64Of) ?? null,
    parent: parent === null ? null : u64Of(parent),
    ...(tokenIds === undefined ? { tokens: null, isEagle: false } : tokensOf(tokenIds)),
    blockSize: field.block_size ?? 0,
    hasLoraId: (field.lora_id ?? null) !== null,
    medium: field.medium ?? null,
    loraName: field.lora_name ?? null,
    cacheSalt: field.cache_salt ?? null,
    hasSaltField: 'cache_salt' in field,
    extraKeys: extraKeyTexts(extraKeys),
    hasUnsupportedExtraKey: hasUnsupportedKey(extraKeys),
    mmHashes: mmHashesOf((field.block_mm_infos ?? null) as Json[] | null),
    groupIdx: field.group_idx ?? null,
    specKind: field.kv_cache_spec_kind ?? null,
    locality: field.locality ?? null,
    ownership: field.ownership ?? null,
    sessionId: field.session_id ?? null,
  };
}

function actualEvent(event: RawEvent): Record<string, unknown> {
  const { blockHashes, tokens, hasParent, parentHigh, parentLow, extraKeys, mmInfos } = event;
  return {
    type: event.type,
    blockHashes: blockHashes?.toBigInts() ?? null,
    parent: hasParent ? wordsToBigInt(parentLow, parentHigh) : null,
    tokens: tokens && Array.from({ length: tokens.length }, (_, index) => tokens.at(index)),
    isEagle: event.isEagle,
    blockSize: event.blockSize,
    hasLoraId: event.hasLoraId,
    medium: event.medium,
    loraName: event.loraName,
    cacheSalt: event.cacheSalt,
    hasSaltField: event.hasSaltField,
    extraKeys:
      extraKeys?.map((keys) => keys.map((key) => key.text + (key.hasOffset ? '@' : ''))) ?? null,
    hasUnsupportedExtraKey: event.hasUnsupportedExtraKey,
    mmHashes: mmInfos?.map((info) => info && [...info.mmHashes]) ?? null,
    groupIdx: event.groupIdx,
    specKind: event.specKind,
    locality: event.locality,
    ownership: event.ownership,
    sessionId: event.sessionId,
  };
}

describe.each(FILES)('the reader takes what $file sends', ({ engine, file }) => {
  test.each(liveCaptures(file))('$case', ({ frames_hex, decoded }) => {
    const native = read(engine, framesOf(frames_hex)[2] as Buffer);
    const [, events, dpRank] = decoded.payload ?? [0, []];
    expect(native.events.map(actualEvent)).toEqual(events.map(expectedEvent));
    expect(native.dpRank).toBe(dpRank ?? null);
    expect(native.dropped).toBeNull();
    expect(native.isEngineUnsupported).toBe(false);
  });
});

/** A captured batch with one event changed in place, as the engine's own bytes otherwise. */
function changed(file: string, name: string, change: (event: never) => void): Buffer {
  const payload = unpack(payloadOf(file, name)) as [number, never[], number];
  change(payload[1][0] as never);
  return Buffer.from(pack(payload));
}

const shortened = (digest: Uint8Array, bytes: number): Buffer => Buffer.from(digest.slice(-bytes));

function droppedOnce(reason: EventFault, removals: number): DroppedEvents {
  const byReason = { unknown_tag: 0, bad_field: 0, missing_field: 0, bad_hash: 0, [reason]: 1 };
  return { byReason, removals };
}

describe('an event that cannot be used is dropped under its reason', () => {
  type ArrayStore = [string, Uint8Array[], Uint8Array, unknown, ...unknown[]];
  interface MapStore {
    block_hashes: Uint8Array[];
    parent_block_hash: Uint8Array;
    token_ids: unknown;
    type: string;
    block_size?: number;
  }
  const arrays = (change: (event: ArrayStore) => void, name = 'stored/hash-bytes-parent-bytes') =>
    changed('vllm-0.10.2', name, change as (event: never) => void);
  const maps = (change: (event: MapStore) => void, name = 'stored/hash-bytes-parent-bytes') =>
    changed('vllm-0.33.0', name, change as (event: never) => void);

  test.each([
    ['7-byte hash', 'bad_hash', arrays((e) => (e[1][0] = shortened(e[1][0] as Buffer, 7)))],
    ['7-byte parent', 'bad_hash', arrays((e) => (e[2] = shortened(e[2], 7)))],
    ['empty hash', 'bad_hash', maps((e) => (e.block_hashes[0] = Buffer.alloc(0)))],
    ['7-byte parent', 'bad_hash', maps((e) => (e.parent_block_hash = Buffer.alloc(7)))],
    ['unknown tag', 'unknown_tag', arrays((e) => (e[0] = 'BlockMoved'))],
    ['unknown tag', 'unknown_tag', maps((e) => (e.type = 'BlockMoved'))],
    ['text for tokens', 'bad_field', arrays((e) => (e[3] = 'tokens'))],
    ['text for tokens', 'bad_field', maps((e) => (e.token_ids = 'tokens'))],
    ['array cut short', 'missing_field', arrays((e) => e.splice(4))],
    ['no block size', 'missing_field', maps((e) => delete e.block_size)],
  ])('a store with %s: %s', (_, reason, payload) => {
    const { events, dropped } = read('vllm', payload);
    expect(events).toEqual([]);
    expect(dropped).toEqual(droppedOnce(reason as EventFault, 0));
  });

  test.each([
    ['array', arrays((e) => (e[1][0] = Buffer.alloc(7)), 'removed/hash-bytes')],
    ['map', maps((e) => (e.block_hashes[0] = Buffer.alloc(7)), 'removed/hash-bytes')],
  ])('a remove (%s) with a 7-byte hash may be a lost removal', (_, payload) => {
    const { events, dropped } = read('vllm', payload);
    expect(events).toEqual([]);
    expect(dropped).toEqual(droppedOnce('bad_hash', 1));
  });

  test('8 bytes are enough, and other events of the batch stay', () => {
    const eight = arrays((e) => (e[1][0] = shortened(e[1][0] as Buffer, 8)));
    const digest = '0706050403020100';
    expect(read('vllm', eight).events[0]?.blockHashes?.toBigInts()).toEqual([
      BigInt(`0x${digest}`),
    ]);
    const mixed = changed('vllm-0.33.0', 'batch/mixed', ((e: MapStore) => {
      e.block_hashes[0] = Buffer.alloc(7);
    }) as (event: never) => void);
    const { events, dropped } = read('vllm', mixed);
    expect(events.map(({ type }) => type)).toEqual(['removed', 'cleared', 'stored']);
    expect(dropped).toEqual(droppedOnce('bad_hash', 0));
  });
});

/** Payload bytes that each case alone makes a fresh relay publish, by the name of the case. */
function publishedByCase(engine: Engine, file: string): Map<string, string> {
  const published = liveCaptures(file).map(({ case: name, frames_hex }) => {
    const relay = safeRelay(engine);
    relay.push(framesOf(frames_hex));
    relay.stop();
    return [name, relay.published.map(({ payload }) => payload.toString('hex')).join()] as const;
  });
  return new Map(published);
}

/** Cases of equal name whose events do not carry the same; each has to differ, or it is not listed. */
const UNLIKE: readonly { arrays: string[]; maps: string[]; name: string; reason: string }[] = [
  {
    name: 'stored/lora-id',
    arrays: ['vllm-0.9.0', 'vllm-0.9.2', 'vllm-0.10.2'],
    maps: ['vllm-0.24.0', 'vllm-0.26.0', 'vllm-0.33.0'],
    reason: 'an adapter was a number before 0.14.0, and has no effect without its name',
  },
  {
    name: 'stored/everything',
    arrays: ['vllm-0.17.0', 'vllm-0.22.0'],
    maps: ['vllm-0.33.0'],
    reason: 'ownership came with 0.29.0, and what another owns is filtered',
  },
];

/** The bridge has never written arrays. */
const MAP_FILES = FILES.filter(({ form, engine }) => form === 'maps' && engine !== 'trtllm');

describe.each(MAP_FILES)('routers see the same', ({ engine, file: mapFile }) => {
  const ofMaps = publishedByCase(engine, mapFile);
  const sources = FILES.filter((one) => one.form === 'arrays' && one.engine === engine);

  test.each(sources)(`of $file as of ${mapFile}`, ({ file }) => {
    const ofArrays = publishedByCase(engine, file);
    const names = [...ofArrays.keys()];
    expect(names.filter((name) => !ofMaps.has(name))).toEqual([]);
    const unlike = UNLIKE.filter(
      ({ arrays, maps }) => arrays.includes(file) && maps.includes(mapFile),
    );
    const differing = names.filter((name) => ofArrays.get(name) !== ofMaps.get(name));
    expect(differing).toEqual(unlike.map(({ name }) => name));
    // Equal because nothing was published on either side would prove little.
    expect(names.filter((name) => ofArrays.get(name) !== '').length).toBeGreaterThanOrEqual(8);
  });
});

/** Events that no router may see, by the rules of the filter; files without any are not listed. */
const HYBRID_GROUPS = {
  'stored.unlearned_group_idx': 1,
  'stored.non_main_attention_kind': 3,
  'removed.non_main_attention_group': 1,
  'stored.unsupported_extra_key': 1,
};
const FILTERED: Readonly<Record<string, Record<string, number>>> = {
  'vllm-0.17.0': { 'stored.unsupported_extra_key': 1 },
  'vllm-0.22.0': HYBRID_GROUPS,
  'vllm-0.24.0': HYBRID_GROUPS,
  'vllm-0.26.0': { ...HYBRID_GROUPS, 'stored.non_local_locality': 1 },
  'vllm-0.33.0': {
    ...HYBRID_GROUPS,
    // Each of the cache manager's 12 stores comes again for its sliding-window group.
    'stored.non_main_attention_kind': 3 + 12,
    'stored.non_local_locality': 1,
    'stored.unknown_ownership': 2,
    'removed.unknown_ownership': 1,
  },
};

function filteredBy({ metrics }: InProcessRelay): Record<string, number> {
  const counts = Object.entries(metrics.filtered).flatMap(([type, reasons]) =>
    Object.entries(reasons).map(([reason, count]) => [`${type}.${reason}`, count] as const),
  );
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** As a subscriber would get it: a replayed batch loses the empty frame in front of its topic. */
function subscriberFrames({ frames_hex }: Capture): Buffer[] {
  return framesOf(frames_hex).slice(-3);
}

test.each(FILES)('$file through the pipeline: only what is no batch is malformed', (source) => {
  const relay = safeRelay(source.engine);
  const sent = captures(source.file).filter(({ frames_hex }) => frames_hex.length > 0);
  for (const capture of sent) relay.push(subscriberFrames(capture));
  relay.stop();
  const { metrics } = relay;
  const ofKind = (kind: string): number => sent.filter((one) => one.decoded.kind === kind).length;
  expect(metrics.malformed).toEqual({
    // A request goes to the engine and has two frames; the end of a replay is no batch.
    frames: ofKind('replay-request'),
    sequence: ofKind('replay-end'),
    oversize: 0,
    msgpack: 0,
    batch_shape: 0,
  });
  const events = sent.flatMap(({ decoded }) => (decoded.payload?.[1] ?? []).map(namedFields));
  for (const [tag, type] of Object.entries(TYPES)) {
    const received = metrics.received[type as 'stored' | 'removed' | 'cleared'];
    expect({ tag, received }).toEqual({
      tag,
      received: events.filter((event) => event.type === tag).length,
    });
  }
  expect(totalOf(metrics.droppedEngineEvents)).toBe(0);
  expect(filteredBy(relay)).toEqual(FILTERED[source.file] ?? {});
  expect(totalOf(metrics.accepted)).toBe(events.length - totalOf(filteredBy(relay)));
  expect(totalOf(metrics.publishedEvents)).toBeGreaterThan(0);
});

/** `hash(…) & (2**64 - 1)` as CPython 3.11 prints it. */
test.each([
  ['()', [], 5740354900026072187n],
  ['(0,)', [0], 9693246245718318424n],
  ['(1,)', [1], 11802529618835948721n],
  ['(100,)', [100], 2279747396317938166n],
  ['(0,) * 4', [0, 0, 0, 0], 15220518902653198062n],
  ['(100, 101, 102)', [100, 101, 102], 4535123289272580229n],
  ['(100, 101, 102, 103)', [100, 101, 102, 103], 8987997706594399559n],
  ['(104, 105, 106, 107)', [104, 105, 106, 107], 18399942243787857090n],
  ['(4294967295,) * 4', new Array<number>(4).fill(4294967295), 1605758171758744503n],
  ['tuple(range(16))', tokensFrom(0, 16), 2828489712818767170n],
  ['tuple(range(1, 65))', tokensFrom(1, 64), 12300932955842272796n],
  ['(151643,) * 128', new Array<number>(128).fill(151643), 8122975866436651801n],
  ['tuple(range(100000, 100256))', tokensFrom(100_000, 256), 6394879365874083661n],
  ['tuple(range(4096))', tokensFrom(0, 4096), 6336972003204112920n],
])("Python's hash of %s", (_, values, hash) => {
  expect(pythonTupleHash(values)).toBe(hash);
});

/** hash(()): the parent of a root page up to SGLang 0.4.10. */
const EMPTY_TUPLE = 5740354900026072187n;

/** The first two pages and their hashes in an old SGLang, which writes them signed. */
const PAGE_1 = { tokens: tokensFrom(100, 4), hash: 8987997706594399559n };
const PAGE_2 = { tokens: tokensFrom(104, 4), hash: 18399942243787857090n };

type Page = typeof PAGE_1;

function pageStored({ tokens, hash }: Page, parent: bigint | null, blockSize = 4): unknown[] {
  return ['BlockStored', [BigInt.asIntN(64, hash)], parent, tokens, blockSize, null];
}

describe('isPositionBlind()', () => {
  const isBlind = (event: unknown): boolean => {
    const { events } = read('vllm', batchFrames(batch([event]))[2] as Buffer);
    return isPositionBlind(events[0] as RawEvent);
  };
  const chained: Page = { tokens: PAGE_1.tokens, hash: 12345678901234567890n };
  const pairs = PAGE_1.tokens.map((token) => [token, token + 1]);

  test.each([
    ['a page under the hash of its own tokens', pageStored(PAGE_1, null)],
    ['a page further down', pageStored(PAGE_2, PAGE_1.hash)],
    ['a root whose parent is hash(())', pageStored(chained, EMPTY_TUPLE)],
    [
      'a whole node in one block',
      pageStored({ tokens: [100], hash: 2279747396317938166n }, null, 1),
    ],
    [
      'the first of several pages',
      ['BlockStored', [PAGE_1.hash, 5n], null, [...PAGE_1.tokens, 1, 2, 3, 4], 4, null],
    ],
    ['token pairs under hash(())', ['BlockStored', [7], EMPTY_TUPLE, pairs, 4, null]],
  ])('yes: %s', (_, event) => {
    expect(isBlind(event)).toBe(true);
  });

  test.each([
    ['a page under another hash', pageStored(chained, null)],
    ["a page under its neighbour's hash", pageStored({ ...PAGE_1, hash: PAGE_2.hash }, null)],
    ['the same hash for other tokens a block', pageStored(PAGE_1, null, 3)],
    ['fewer tokens than a block', pageStored(PAGE_1, null, 8)],
    ['no tokens a block', pageStored({ tokens: [], hash: EMPTY_TUPLE }, null, 0)],
    ['no block', ['BlockStored', [], null, PAGE_1.tokens, 4, null]],
    ['token pairs', ['BlockStored', [PAGE_1.hash], null, pairs, 4, null]],
    ['a remove', ['BlockRemoved', [PAGE_1.hash]]],
    ['a clear', ['AllBlocksCleared']],
  ])('no: %s', (_, event) => {
    expect(isBlind(event)).toBe(false);
  });
});

/** What SGLang sends for two pages of one prefix, the first one's tokens once more below, a removal. */
const OLD_SGLANG: Readonly<Record<string, unknown[][]>> = {
  'up to 0.4.10: roots under hash(())': [
    [['AllBlocksCleared'], pageStored(PAGE_1, EMPTY_TUPLE), pageStored(PAGE_2, PAGE_1.hash)],
    [pageStored(PAGE_1, PAGE_2.hash)],
    [['BlockRemoved', [PAGE_2.hash]]],
  ],
  '0.5.1 to 0.5.5: nil for the first page of every node': [
    [['AllBlocksCleared'], pageStored(PAGE_1, null), pageStored(PAGE_2, PAGE_1.hash)],
    [pageStored(PAGE_1, null)],
    [['BlockRemoved', [PAGE_2.hash]]],
  ],
};

describe.each(Object.entries(OLD_SGLANG))('SGLang before 0.5.6, %s', (_, batches) => {
  const played = (engine: Engine): InProcessRelay => {
    const relay = safeRelay(engine);
    for (const [sequence, events] of batches.entries()) {
      relay.push(batchFrames(batch(events), sequence));
    }
    relay.stop();
    return relay;
  };

  test('nothing leaves, and all is counted', () => {
    const relay = played('sglang');
    expect(relay.published).toEqual([]);
    expect(relay.metrics.isEngineUnsupported).toBe(true);
    expect(filteredBy(relay)).toEqual({
      'stored.engine_unsupported': 3,
      'removed.engine_unsupported': 1,
      'cleared.engine_unsupported': 1,
    });
    expect(totalOf(relay.metrics.accepted)).toBe(0);
  });

  test('as the stream of another engine it is relayed', () => {
    const relay = played('vllm');
    expect(filteredBy(relay)).toEqual({});
    expect(totalOf(relay.metrics.accepted)).toBe(5);
    expect(relay.published).toHaveLength(3);
  });
});
