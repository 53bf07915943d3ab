/**
 * What safe does differently, one test a divergence, each beside what strict does with the same input.
 * docs/compatibility.md names these tests; the last tests here hold document and code together.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { unpack } from 'msgpackr';
import { expect, test } from 'vitest';
import { pythonTupleHash } from '../src/engines/sglang-legacy.ts';
import { type Compat, DIVERGENCES } from '../src/protocol/compat.ts';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from './support/batches.ts';
import { InProcessRelay } from './support/in-process-relay.ts';
import { mooncakeEvent } from './support/mooncake-messages.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from './support/scenarios.ts';

interface DecodedEvent {
  storage_tier: string;
  session_id?: string;
  event: {
    event_id: number;
    dp_rank: number;
    data:
      | 'cleared'
      | { removed: { block_hashes: (number | bigint)[] } }
      | {
          stored: {
            parent_hash: number | bigint | null;
            blocks: { block_hash: number | bigint; tokens_hash: bigint }[];
          };
        };
  };
}

interface Played {
  relay: InProcessRelay;
  events: DecodedEvent[];
  /** `S parent:[hashes] tier` and the like, in order. */
  shown: string[];
  tokensHashes: string[];
}

interface PlayOptions {
  engine?: 'vllm' | 'sglang';
  fullReports?: boolean;
  maxMessageBytes?: number;
}

function play(compat: Compat, payloads: unknown[], options: PlayOptions = {}): Played {
  const { engine = 'vllm', fullReports = false, maxMessageBytes } = options;
  const config = { ...pipelineConfigOf(PLAIN_SETTINGS, compat), fullReports };
  const relay = new InProcessRelay(config, maxMessageBytes, engine);
  for (const [sequence, payload] of payloads.entries()) relay.push(batchFrames(payload, sequence));
  relay.stop();
  const events = relay.published.flatMap(({ payload }) => unpack(payload) as DecodedEvent[]);
  return { relay, events, shown: events.map(show), tokensHashes: events.flatMap(tokensHashesOf) };
}

function show({ storage_tier, event: { data } }: DecodedEvent): string {
  const tier = storage_tier === 'device' ? '' : ` ${storage_tier}`;
  if (data === 'cleared') return 'X';
  if ('removed' in data) return `R [${data.removed.block_hashes.join()}]${tier}`;
  const { parent_hash, blocks } = data.stored;
  const parent = parent_hash === null ? '' : `${parent_hash}:`;
  return `S ${parent}[${blocks.map((block) => block.block_hash).join()}]${tier}`;
}

function tokensHashesOf({ event: { data } }: DecodedEvent): string[] {
  if (data === 'cleared' || 'removed' in data) return [];
  return data.stored.blocks.map((block) => String(block.tokens_hash));
}

test('end-marker: the number 2^64 − 1 is no batch', () => {
  const frames = batchFrames(batch([storeEvent([1])]), 2n ** 64n - 1n);
  for (const [compat, malformed] of [
    ['strict', 0],
    ['safe', 1],
  ] as const) {
    const { relay } = play(compat, []);
    const fresh = play(compat, []).relay;
    fresh.push(frames);
    expect(fresh.metrics.malformed.sequence).toBe(malformed);
    expect(relay.metrics.malformed.sequence).toBe(0);
  }
});

test('bad-event: it costs itself alone, and a lost removal degrades', () => {
  const good = [storeEvent([1]), storeEvent([2], 1)];
  const payload = (bad: unknown): unknown[] => [batch([good[0], bad, good[1]])];
  const badEvents: [unknown, string, number][] = [
    [['BlockPinned', [1]], 'unknown_tag', 0],
    [storeEvent([3], null, { medium: 5 }), 'bad_field', 0],
    [{ type: 'BlockStored', block_hashes: [3] }, 'missing_field', 0],
    [storeEvent(['x' as unknown as number]), 'bad_hash', 0],
    [removeEvent([1], { medium: 5 }), 'bad_field', 1],
    [{ medium: 'GPU' }, 'missing_field', 1],
    [5, 'bad_field', 1],
  ];
  for (const [bad, reason, removals] of badEvents) {
    expect(play('strict', payload(bad)).shown).toEqual([]);
    const { shown, relay } = play('safe', payload(bad));
    expect(shown).toEqual(['S [1,2]']);
    expect(relay.metrics.droppedEngineEvents).toMatchObject({ [reason]: 1 });
    expect(relay.metrics.droppedRemovals).toBe(removals);
  }
});

test('byte-hash: the last 8 bytes, as hash and as parent; shorter ones cost the event', () => {
  const digest = Buffer.alloc(32);
  digest[31] = 0x65;
  const store = storeEvent([digest]);
  const child = { ...storeEvent([102]), parent_block_hash: digest };
  expect(play('safe', [batch([store]), batch([child]), batch([removeEvent([101])])]).shown).toEqual(
    ['S [101]', 'S 101:[102]', 'R [101]'],
  );
  expect(play('strict', [batch([store])]).shown).toEqual([]);
  const { relay } = play('safe', [batch([storeEvent([Buffer.alloc(7)])])]);
  expect(relay.metrics.droppedEngineEvents.bad_hash).toBe(1);
});

test('unsupported-extra-key: the store is filtered, whatever the tier', () => {
  for (const key of [null, Buffer.of(0xff, 0xfe)]) {
    for (const medium of ['GPU', 'DISK']) {
      const payload = [batch([storeEvent([1], null, { extra_keys: [[key]], medium })])];
      const { shown, relay } = play('safe', payload);
      expect(shown).toEqual([]);
      expect(relay.metrics.filtered.stored.unsupported_extra_key).toBe(1);
      expect(play('strict', payload).relay.metrics.malformed.batch_shape).toBe(1);
    }
  }
});

test('two-elements: a batch without the rank element is one without a rank', () => {
  const payload = [[1.5, [storeEvent([1])]]];
  expect(play('safe', payload).shown).toEqual(['S [1]']);
  expect(play('strict', payload).relay.metrics.malformed.batch_shape).toBe(1);
});

test('media: without case, FS is disk and OBJ external', () => {
  const media: [string, string][] = [
    ['cpu', ' host_pinned'],
    ['gpu', ''],
    ['FS', ' disk'],
    ['obj', ' external'],
  ];
  for (const [medium, tier] of media) {
    const payload = [batch([storeEvent([1], null, { medium })])];
    expect(play('safe', payload).shown).toEqual([`S [1]${tier}`]);
    expect(play('strict', payload).relay.metrics.filtered.stored.unknown_medium).toBe(1);
  }
});

test('chunk: cut into blocks with right parents, and removed as a whole', () => {
  const chunk = storeEvent([901, 902], null, {
    token_ids: tokensFrom(0, 16),
    block_size: 8,
    medium: 'CPU',
  });
  const { events, relay } = play('safe', [
    batch([chunk]),
    batch([removeEvent([901], { medium: 'cpu' })]),
    batch([removeEvent([902], { medium: 'CPU' })]),
  ]);
  const stored = events[0]?.event.data as { stored: { blocks: { block_hash: number | bigint }[] } };
  const hashes = stored.stored.blocks.map((block) => block.block_hash);
  expect(hashes).toHaveLength(4);
  expect([hashes[1], hashes[3]]).toEqual([901, 902]);
  expect(new Set(hashes).size).toBe(4);
  expect(events.slice(1).map(show)).toEqual([
    `R [${hashes.slice(0, 2).join()}] host_pinned`,
    `R [${hashes.slice(2).join()}] host_pinned`,
  ]);
  expect(relay.metrics.liveBlocks.host_pinned).toBe(0);
  expect(play('strict', [batch([chunk])]).shown).toEqual(['S [] host_pinned']);
});

test('split: parts are a chain with contiguous ids, and no message is over the limit', () => {
  const hashes = Array.from({ length: 300 }, (_, index) => 1000 + index);
  const payload = [
    batch([storeEvent(hashes, 7, { session_id: 'chat' })]),
    batch([removeEvent(hashes)]),
  ];
  const whole = play('safe', payload);
  const { events, relay } = play('safe', payload, { maxMessageBytes: 4096 });
  expect(events.map(({ event }) => event.event_id)).toEqual(events.map((_, index) => index + 1));
  let parent: number | bigint = 7;
  const blocks: (number | bigint)[] = [];
  for (const { event, session_id } of events) {
    if (typeof event.data === 'string' || !('stored' in event.data)) continue;
    expect(session_id).toBe('chat');
    expect(event.data.stored.parent_hash).toBe(parent);
    blocks.push(...event.data.stored.blocks.map((block) => block.block_hash));
    parent = blocks.at(-1) as number;
  }
  expect(blocks).toEqual(hashes);
  expect(play('safe', payload, { maxMessageBytes: 4096 }).tokensHashes).toEqual(whole.tokensHashes);
  expect(relay.metrics.publishFailures.payload_too_large).toBe(0);
  expect(relay.envelopeBytes.every((bytes) => bytes <= 4096)).toBe(true);
  expect(relay.metrics.liveBlocks.device).toBe(0);
  const strict = play('strict', payload, { maxMessageBytes: 4096 });
  expect(strict.relay.metrics.publishFailures.payload_too_large).toBeGreaterThan(0);
});

test('empty-store: counted, and gone without a trace', () => {
  const payload = [
    batch([storeEvent([50], 7, { block_size: 8 }), storeEvent([11])]),
    batch([storeEvent([12], 11), storeEvent([51], 12, { block_size: 8 }), storeEvent([13], 12)]),
  ];
  const { shown, relay } = play('safe', payload);
  expect(shown).toEqual(['S [11]', 'S 11:[12,13]']);
  expect(relay.metrics.emptyStores).toBe(2);
  expect(relay.metrics.droppedEvents).toBe(0);
  expect(play('strict', payload).shown[0]).toBe('S 7:[11]');
});

test('tier-namespaces: a host-tier remove leaves the salt of the device block', () => {
  const salted = { cache_salt: 't1' };
  const payload = [
    batch([storeEvent([1], null, salted)]),
    batch([storeEvent([1], null, { ...salted, medium: 'CPU' })]),
    batch([removeEvent([1], { medium: 'CPU' })]),
    batch([storeEvent([2], 1)]),
  ];
  const child = (compat: Compat): string | undefined => play(compat, payload).tokensHashes.at(-1);
  const explicit = play('safe', [batch([storeEvent([2], 1, salted)])]).tokensHashes[0];
  const unsalted = play('safe', [batch([storeEvent([2], 1)])]).tokensHashes[0];
  expect(child('safe')).toBe(explicit);
  expect(child('strict')).toBe(unsalted);
});

test('ambiguous-forgotten: with its last copy, not before', () => {
  const twoSalts = [
    batch([storeEvent([1], null, { cache_salt: 'a' })]),
    batch([storeEvent([1], null, { cache_salt: 'b' })]),
  ];
  const child = batch([storeEvent([2], 1)]);
  const remove = batch([removeEvent([1])]);
  const filtered = (compat: Compat, ...payloads: unknown[]): number =>
    play(compat, payloads).relay.metrics.filtered.stored.ambiguous_cache_namespace;
  expect(filtered('safe', ...twoSalts, child)).toBe(1);
  expect(filtered('safe', ...twoSalts, remove, child)).toBe(1);
  expect(filtered('safe', ...twoSalts, remove, remove, child)).toBe(0);
  expect(filtered('strict', ...twoSalts, remove, remove, child)).toBe(1);
});

test('locality-tail: a locality in the third of three slots is one', () => {
  const array = (tail: unknown[]): unknown => [
    'BlockStored',
    [1],
    null,
    [1, 2, 3, 4],
    4,
    null,
    'GPU',
    null,
    null,
    ...tail,
  ];
  const local = [batch([array([1, 'full_attention', 'LOCAL'])])];
  const remote = [batch([array([1, 'full_attention', 'REMOTE'])])];
  expect(play('safe', local).shown).toEqual(['S [1]']);
  expect(play('safe', remote).relay.metrics.filtered.stored.non_local_locality).toBe(1);
  expect(play('strict', local).relay.metrics.filtered.stored.unknown_kind).toBe(1);
  const kinds = [batch([array([1, 'mamba', 'full_attention'])])];
  expect(play('safe', kinds).shown).toEqual(['S [1]']);
});

test('full-reports: a repeat of held blocks is not counted, what follows it is', () => {
  const payload = [
    batch([storeEvent([1, 2])]),
    batch([storeEvent([1, 2]), storeEvent([3], 2)]),
    batch([removeEvent([3]), removeEvent([2]), removeEvent([1])]),
  ];
  const reported = play('safe', payload, { fullReports: true });
  expect(reported.relay.metrics.liveBlocks.device).toBe(0);
  expect(reported.shown.at(-1)).toBe('R [3,2,1]');
  const counted = play('safe', payload);
  expect(counted.relay.metrics.liveBlocks.device).toBe(2);
  // A single block is an ordinary second copy: identical prompts make those.
  const single = [batch([storeEvent([1])]), batch([storeEvent([1])]), batch([removeEvent([1])])];
  expect(play('safe', single, { fullReports: true }).relay.metrics.liveBlocks.device).toBe(1);
});

test('old-sglang: recognised by its hashes and refused', () => {
  const tokens = [100, 101, 102, 103];
  const store = ['BlockStored', [pythonTupleHash(tokens)], null, tokens, 4, null];
  const payload = [batch([store]), batch([storeEvent([5])])];
  const { shown, relay } = play('safe', payload, { engine: 'sglang' });
  expect(shown).toEqual([]);
  expect(relay.metrics.filtered.stored.engine_unsupported).toBe(2);
  expect(play('safe', payload).shown).toHaveLength(2);
  expect(play('strict', payload, { engine: 'sglang' }).shown).toHaveLength(2);
});

test('store-event: an event of Mooncake Store is dropped, whatever engine tag stands beside it', () => {
  const types = ['stored', 'removed', 'cleared'] as const;
  const events = types.map((type, id) => mooncakeEvent(type, id + 1, { block_size: 4 }));
  const payload = [batch([storeEvent([1])]), ...events.map((event) => batch([event]))];
  const { shown, relay } = play('safe', payload);
  expect(shown).toEqual(['S [1]']);
  expect(relay.metrics.droppedEngineEvents.unknown_tag).toBe(3);
  expect(relay.metrics.liveBlocks.device).toBe(1);
  expect(play('strict', payload).shown).toContain('X');
});

const document = readFileSync(new URL('../docs/compatibility.md', import.meta.url), 'utf8');

test('docs/compatibility.md lists the divergences of the code, each with its test', () => {
  const rows = [...document.matchAll(/^\| `([a-z-]+)` *\|.*\| ([^|]+) \|$/gm)];
  expect(rows.map(([, name]) => name)).toEqual([...DIVERGENCES]);
  for (const [, name, where] of rows) {
    const [file, title] = (where ?? '').trim().split(/: (.*)/s) as [string, string];
    const text = readFileSync(new URL(`./${file}.test.ts`, import.meta.url), 'utf8');
    const named = /\btest\(\s*['"]([^'"]*)/g;
    const titles = [...text.matchAll(named)].map((match) => match[1] ?? '');
    const has = titles.some((one) => one.startsWith(title));
    expect(has ? name : `${name}: no test "${title}" in ${file}`).toBe(name);
  }
});

test('every divergence is made somewhere, and nothing else looks at the mode', () => {
  const sources = readdirSync(new URL('../src/', import.meta.url), { recursive: true })
    .map(String)
    .filter((path) => path.endsWith('.ts') && !path.startsWith('kernel/assembly'))
    .map((path) => ({
      path,
      text: readFileSync(new URL(`../src/${path}`, import.meta.url), 'utf8'),
    }));
  const made = sources.flatMap(({ text }) =>
    [...text.matchAll(/diverges\([^)]*'([a-z-]+)'\)/g)].map((match) => match[1]),
  );
  expect(new Set(made)).toEqual(new Set(DIVERGENCES));
  const comparisons = sources
    .filter(({ path }) => path !== 'protocol/compat.ts' && !path.startsWith('config/'))
    .filter(({ text }) => /[!=]== '(safe|strict)'/.test(text))
    .map(({ path }) => path);
  expect(comparisons).toEqual([]);
});

test('a salted block that is removed and stored again in one message keeps its salt', () => {
  const salted = (salt: string): unknown => storeEvent([1], null, { cache_salt: salt });
  const child = batch([storeEvent([2], 1)]);
  const explicit = (salt: string): string | undefined =>
    play('safe', [batch([storeEvent([2], 1, { cache_salt: salt })])]).tokensHashes[0];
  const again = (salt: string): unknown[] => [
    batch([salted('a')]),
    batch([removeEvent([1]), salted(salt)]),
    child,
  ];
  for (const compat of ['strict', 'safe'] as const) {
    expect(play(compat, again('a')).tokensHashes.at(-1)).toBe(explicit('a'));
    expect(play(compat, again('b')).tokensHashes.at(-1)).toBe(explicit('b'));
  }
  // Still ambiguous for whoever comes before the next message: missing, never wrong.
  const ambiguous = [batch([salted('a')]), batch([salted('b')])];
  const { shown, relay } = play('safe', [
    ...ambiguous,
    batch([removeEvent([1, 1]), salted('b')]),
    child,
  ]);
  expect(shown).not.toContain('S 1:[2]');
  expect(relay.metrics.filtered.stored.ambiguous_cache_namespace).toBe(1);
});
