/**
 * What holds for any history of engine batches: generated ones are written as an engine would write
 * them, relayed, and what leaves is applied as a router applies it.
 *
 * The model follows the rules of filter, converter and counts from the history alone, not from our code;
 * only the hash function, which captured vectors prove, is ours.
 */
import fc from 'fast-check';
import { unpack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { hashSeed, namespaceDigest, tokensHashes } from '../../src/hashing/tokens-hash.ts';
import { arena } from '../../src/kernel/arena.ts';
import { TokenList } from '../../src/kernel/token-list.ts';
import type { Compat } from '../../src/protocol/compat.ts';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import { batch, batchFrames, tokensFrom } from '../support/batches.ts';
import { dumpOf } from '../support/held-blocks.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { fixedSeed } from '../support/properties.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from '../support/scenarios.ts';

const BLOCK_SIZE = 4;

/** A history is long, so fewer of them go as far. */
const runs = { ...fixedSeed, numRuns: Math.ceil(fixedSeed.numRuns / 2) };

interface StoreOp {
  readonly kind: 'store';
  readonly medium: string | null;
  readonly hashes: readonly bigint[];
  readonly parent: bigint | null;
  readonly tokens: readonly number[];
  readonly blockSize: number;
  readonly loraName: string | null;
  readonly salt: string | null;
  readonly sessionId: string | null;
  /** Hash of the image in each block, null for none. */
  readonly images: readonly (bigint | null)[];
  readonly form: Form;
}
interface RemoveOp {
  readonly kind: 'remove';
  readonly medium: string | null;
  readonly hashes: readonly bigint[];
  readonly form: Form;
}
type Op = StoreOp | RemoveOp | { readonly kind: 'clear'; readonly form: Form };

/** How an event is written: as an array or a map, with hashes signed or not. */
interface Form {
  readonly asMap: boolean;
  readonly signed: boolean;
}

interface BatchOp {
  readonly rank: number;
  readonly events: readonly Op[];
  /** Quiet time in front of it. */
  readonly pauseMs: number;
}

type History = readonly BatchOp[];

// ── Histories ─────────────────────────────────────────────────────────────────────────────────────

interface HistoryOptions {
  /** Ranks 0 to `ranks` − 1, batch by batch. */
  readonly ranks?: number;
  readonly media?: readonly (string | null)[];
  /** Salts: none, on each store, or on some, so that children inherit them. */
  readonly salts?: 'none' | 'each' | 'some';
  /** Block hashes to choose from; few, so that they meet. */
  readonly hashes?: number;
  readonly maxBlocks?: number;
  readonly maxBatches?: number;
  readonly maxEvents?: number;
  /** Stores of no whole block, by no hash or another block size. */
  readonly emptyStores?: boolean;
  readonly sessionIds?: readonly (string | null)[];
}

const MEDIA = ['GPU', 'GPU', 'GPU', 'GPU', 'CPU', 'DISK', 'EXTERNAL', null] as const;
/** As above, with names that strict does not know. */
const ALL_MEDIA = [...MEDIA, 'cpu', 'FS'] as const;

/** Small numbers and full 64-bit ones. */
function hashAt(index: number): bigint {
  const number = BigInt(index + 1);
  return index % 3 === 0 ? number : BigInt.asUintN(64, number * 0x9e37_79b9_7f4a_7c15n);
}

const form = fc.record({ asMap: fc.boolean(), signed: fc.boolean() });

function storeDraft(options: Required<HistoryOptions>) {
  const { hashes, maxBlocks, emptyStores, salts, media, sessionIds } = options;
  const salt = fc.constantFrom('tenant-a', 'tenant-b');
  return fc.record({
    kind: fc.constant('store' as const),
    medium: fc.constantFrom(...media),
    // Null begins where the last store of its rank and medium ended, so that chains grow.
    start: fc.option(fc.nat(hashes - 1), { freq: 1 }),
    // Further stores of as many blocks, each under the one before.
    more: fc.constantFrom(0, 0, 0, 1, 2),
    count: fc.integer({ min: emptyStores ? 0 : 1, max: maxBlocks }),
    parent: fc.constantFrom('chain', 'chain', 'chain', 'chain', 'root', 'other'),
    flaw: fc.oneof(
      { weight: 8, arbitrary: fc.constant('none') },
      { weight: 4, arbitrary: fc.constantFrom('repeat', 'parent', 'short', 'surplus') },
      { weight: emptyStores ? 1 : 0, arbitrary: fc.constant('size') },
    ),
    loraName: fc.constantFrom(null, null, 'ad-1'),
    salt: salts === 'none' ? fc.constant(null) : salts === 'each' ? salt : fc.option(salt),
    sessionId: fc.constantFrom(...sessionIds),
    images: fc.constantFrom(false, false, false, true),
    form,
  });
}

function history(given: HistoryOptions = {}): fc.Arbitrary<History> {
  const options = {
    ranks: 1,
    media: ALL_MEDIA,
    salts: 'none' as const,
    hashes: 12,
    maxBlocks: 4,
    maxBatches: 20,
    maxEvents: 6,
    emptyStores: true,
    sessionIds: [null, null, null, null, null, null, 'chat-1', 'chat-2'],
    ...given,
  };
  const remove = fc.record({
    kind: fc.constant('remove' as const),
    medium: fc.constantFrom(...options.media),
    indices: fc.array(fc.nat(options.hashes - 1), { maxLength: options.maxBlocks }),
    form,
  });
  const clear = fc.record({ kind: fc.constant('clear' as const), form });
  const draft = fc.oneof(
    { weight: 12, arbitrary: storeDraft(options) },
    { weight: 7, arbitrary: remove },
    { weight: 1, arbitrary: clear },
  );
  const batchDraft = fc.record({
    rank: fc.nat(options.ranks - 1),
    events: fc.array(draft, { maxLength: options.maxEvents, size: 'max' }),
    pauseMs: fc.nat(12),
  });
  const { maxBatches: maxLength } = options;
  return fc.array(batchDraft, { minLength: 1, maxLength, size: 'max' }).map((drafts) => {
    const ends = new Map<string, number>();
    return drafts.map(({ rank, events, pauseMs }) => ({
      rank,
      pauseMs,
      events: events.flatMap((event): Op[] => {
        if (event.kind === 'clear') return [event];
        if (event.kind === 'remove') {
          const { medium, indices } = event;
          return [{ kind: 'remove', medium, hashes: indices.map(hashAt), form: event.form }];
        }
        const place = `${rank}/${event.medium ?? 'GPU'}`;
        const first = event.start ?? ends.get(place) ?? 0;
        ends.set(place, (first + event.count * (event.more + 1)) % options.hashes);
        return Array.from({ length: event.more + 1 }, (_, index) => {
          const parent = index === 0 ? event.parent : 'chain';
          return storeOf({ ...event, parent }, first + index * event.count, options.hashes);
        });
      }),
    }));
  });
}

type StoreDraft = ReturnType<typeof storeDraft> extends fc.Arbitrary<infer Draft> ? Draft : never;

function storeOf(draft: StoreDraft, start: number, hashCount: number): StoreOp {
  const { medium, count, flaw, loraName, salt, sessionId } = draft;
  const indices = Array.from({ length: count }, (_, index) => (start + index) % hashCount);
  const hashes = indices.map(hashAt);
  const tokens = indices.flatMap((index) => tokensFrom(1000 + index * BLOCK_SIZE, BLOCK_SIZE));
  const before = hashAt((start + hashCount - 1) % hashCount);
  const parent = { chain: before, root: null, other: 77n }[draft.parent] ?? null;
  if (flaw === 'repeat' && count > 0) hashes.push(hashes[0] as bigint);
  // One block stays whole, so that this alone makes no empty store.
  if (flaw === 'short' && count > 1) tokens.length -= 1;
  if (flaw === 'surplus') tokens.push(1, 2, 3);
  return {
    kind: 'store',
    medium,
    hashes,
    parent: flaw === 'parent' ? (hashes.at(-1) ?? parent) : parent,
    tokens,
    blockSize: flaw === 'size' ? BLOCK_SIZE + 2 : BLOCK_SIZE,
    loraName,
    salt,
    sessionId,
    images: hashes.map((_, index) => (draft.images && index % 2 === 0 ? BigInt(90 + index) : null)),
    form: draft.form,
  };
}

// ── What the engine writes ────────────────────────────────────────────────────────────────────────

function mmInfoOf(image: bigint | null): unknown {
  return image === null ? null : { mm_objects: [{ mm_hash: image, offsets: [[0, 2]] }] };
}

function eventOf(op: Op): unknown {
  const { asMap, signed } = op.form;
  if (op.kind === 'clear') return asMap ? { type: 'AllBlocksCleared' } : ['AllBlocksCleared'];
  const integer = (hash: bigint): bigint => (signed ? BigInt.asIntN(64, hash) : hash);
  const hashes = op.hashes.map(integer);
  if (op.kind === 'remove') {
    return asMap
      ? { type: 'BlockRemoved', block_hashes: hashes, medium: op.medium }
      : ['BlockRemoved', hashes, op.medium];
  }
  const parent = op.parent === null ? null : integer(op.parent);
  const hasImages = op.images.some((image) => image !== null);
  const mmInfos = op.images.map(mmInfoOf);
  // An array has no place for a session, nor for both an adapter and a salt.
  if (asMap || op.sessionId !== null || (op.salt !== null && op.loraName !== null)) {
    return {
      type: 'BlockStored',
      block_hashes: hashes,
      parent_block_hash: parent,
      token_ids: op.tokens,
      block_size: op.blockSize,
      medium: op.medium,
      lora_name: op.loraName,
      ...(op.salt !== null && { cache_salt: op.salt }),
      ...(op.sessionId !== null && { session_id: op.sessionId }),
      ...(hasImages && { block_mm_infos: mmInfos }),
    };
  }
  const nameOrSalt = op.salt === null ? op.loraName : { cache_salt: op.salt };
  const head = [
    'BlockStored',
    hashes,
    parent,
    op.tokens,
    op.blockSize,
    null,
    op.medium,
    nameOrSalt,
  ];
  return hasImages ? [...head, null, mmInfos] : head;
}

function framesFor({ rank, events }: BatchOp, sequence: number): Buffer[] {
  return batchFrames(batch(events.map(eventOf), rank), sequence);
}

// ── What leaves ───────────────────────────────────────────────────────────────────────────────────

type U64 = number | bigint;
interface WireBlock {
  block_hash: U64;
  tokens_hash: U64;
  mm_extra_info: unknown;
}
interface WireEvent {
  storage_tier: StorageTier;
  session_id?: string;
  event: {
    event_id: number;
    dp_rank: number;
    data:
      | 'cleared'
      | { stored: { parent_hash: U64 | null; blocks: WireBlock[] } }
      | { removed: { block_hashes: U64[] } };
  };
}

/** One block of one router event; for a clear, the rank alone. */
interface BlockEffect {
  readonly kind: 'S' | 'R' | 'X';
  readonly rank: number;
  readonly tier: StorageTier;
  readonly hash: bigint;
  readonly tokensHash: bigint;
  /** The block before it, be it in the event or the event's parent. */
  readonly parent: bigint | null;
  readonly image: string;
  readonly sessionId: string | null;
}

const NO_BLOCK = { hash: 0n, tokensHash: 0n, parent: null, image: '', sessionId: null };

function shownImage(info: unknown): string {
  return JSON.stringify(info, (_, value: unknown) =>
    typeof value === 'bigint' ? Number(value) : value,
  );
}

function effectsOf({ storage_tier: tier, session_id, event }: WireEvent): BlockEffect[] {
  const { data, dp_rank: rank } = event;
  const none = { ...NO_BLOCK, rank, tier };
  if (data === 'cleared') return [{ ...none, kind: 'X' }];
  if ('removed' in data) {
    return data.removed.block_hashes.map((hash) => ({ ...none, kind: 'R', hash: BigInt(hash) }));
  }
  const { parent_hash: first, blocks } = data.stored;
  return blocks.map(({ block_hash, tokens_hash, mm_extra_info }, index) => {
    const before = index === 0 ? first : (blocks[index - 1]?.block_hash ?? null);
    return {
      ...none,
      kind: 'S',
      hash: BigInt(block_hash),
      tokensHash: BigInt(tokens_hash),
      parent: before === null ? null : BigInt(before),
      image: shownImage(mm_extra_info),
      sessionId: session_id ?? null,
    };
  });
}

function shown({
  kind,
  rank,
  tier,
  hash,
  tokensHash,
  parent,
  image,
  sessionId,
}: BlockEffect): string {
  return [kind, rank, tier, hash, tokensHash, parent, image, sessionId].join(' ');
}

interface PlayOptions {
  readonly timeoutMs?: number;
  readonly maxBatchBlocks?: number;
  readonly maxMessageBytes?: number;
  readonly withPauses?: boolean;
}

class Played {
  readonly relay: InProcessRelay;
  readonly #withPauses: boolean;
  #sequence = 0;

  constructor(compat: Compat, options: PlayOptions = {}) {
    const { timeoutMs = 0, maxBatchBlocks = 128, maxMessageBytes, withPauses } = options;
    const settings = {
      ...PLAIN_SETTINGS,
      kv_block_size: BLOCK_SIZE,
      batching_timeout_ms: timeoutMs,
    };
    const config = { ...pipelineConfigOf(settings, compat), maxBatchBlocks };
    this.relay = new InProcessRelay(config, maxMessageBytes);
    this.#withPauses = withPauses ?? timeoutMs > 0;
  }

  push(batches: History): this {
    for (const one of batches) {
      if (this.#withPauses) this.relay.advance(one.pauseMs);
      this.relay.push(framesFor(one, this.#sequence++));
    }
    return this;
  }

  stop(): this {
    this.relay.stop();
    return this;
  }

  get events(): WireEvent[] {
    return this.relay.published.flatMap(({ payload }) => unpack(payload) as WireEvent[]);
  }

  get effects(): BlockEffect[] {
    return this.events.flatMap(effectsOf);
  }

  get payloads(): string[] {
    return this.relay.published.map(({ payload }) => payload.toString('hex'));
  }
}

function played(compat: Compat, batches: History, options: PlayOptions = {}): Played {
  return new Played(compat, options).push(batches).stop();
}

/** What a router holds: tokens hash by rank, tier and block hash. */
type Held = Record<string, bigint>;

function foldAsSet(effects: readonly BlockEffect[]): Held {
  const held = new Map<string, bigint>();
  for (const { kind, rank, tier, hash, tokensHash } of effects) {
    const key = `${rank}/${tier}/${hash}`;
    if (kind === 'S') held.set(key, tokensHash);
    else if (kind === 'R') held.delete(key);
    else for (const one of held.keys()) if (one.startsWith(`${rank}/`)) held.delete(one);
  }
  return Object.fromEntries(held);
}

// ── What should leave ─────────────────────────────────────────────────────────────────────────────

const TIERS: Readonly<Record<string, StorageTier>> = {
  GPU: 'device',
  CPU: 'host_pinned',
  DISK: 'disk',
  EXTERNAL: 'external',
};

const AMBIGUOUS = Symbol('ambiguous');

/**
 * Copies of each block, as accepted and converted events say, and the salt each block is under: strict
 * keeps no tiers apart, safe does, and safe forgets an ambiguous block with its last copy.
 */
class Model {
  /** Every effect there would be if no remove were left out. */
  readonly effects: BlockEffect[] = [];
  readonly #compat: Compat;
  readonly #copies = new Map<string, { count: number; tokensHash: bigint }>();
  readonly #salts = new Map<string, string | typeof AMBIGUOUS>();

  constructor(compat: Compat, batches: History) {
    this.#compat = compat;
    arena.reset();
    for (const { rank, events } of batches) for (const op of events) this.#apply(rank, op);
  }

  get held(): Held {
    const live = [...this.#copies].filter(([, { count }]) => count > 0);
    return Object.fromEntries(live.map(([key, { tokensHash }]) => [key, tokensHash]));
  }

  #apply(rank: number, op: Op): void {
    if (op.kind === 'clear') {
      this.effects.push({ ...NO_BLOCK, kind: 'X', rank, tier: 'device' });
      for (const map of [this.#copies, this.#salts]) {
        for (const key of map.keys()) if (key.startsWith(`${rank}/`)) map.delete(key);
      }
      return;
    }
    const tier = this.#tierOf(op.medium);
    if (tier === undefined) return;
    if (op.kind === 'store') this.#store(rank, tier, op);
    else this.#remove(rank, tier, op.hashes);
  }

  #tierOf(medium: string | null): StorageTier | undefined {
    if (medium === null) return 'device';
    if (this.#compat === 'strict') return TIERS[medium];
    return medium === 'FS' ? 'disk' : TIERS[medium.toUpperCase()];
  }

  #store(rank: number, tier: StorageTier, op: StoreOp): void {
    const salt = this.#saltOf(rank, tier, op);
    if (salt === AMBIGUOUS) return;
    const all = op.parent === null ? op.hashes : [op.parent, ...op.hashes];
    if (new Set(all).size < all.length || op.blockSize !== BLOCK_SIZE) return;
    const blockCount = Math.min(op.hashes.length, Math.floor(op.tokens.length / BLOCK_SIZE));
    const tokens = tokensHashes({
      tokens: TokenList.of(...op.tokens),
      blockSize: BLOCK_SIZE,
      blockCount,
      isEagle: false,
      seed: hashSeed(op.loraName, salt === null ? null : namespaceDigest(salt)),
      mmInfos: op.images.map((image) =>
        image === null ? null : { mmHashes: BigUint64Array.of(image), offsets: [] },
      ),
      padTokenIds: { imageTokenId: null, videoTokenId: null },
    }).toBigInts();
    for (const [block, hash] of op.hashes.slice(0, blockCount).entries()) {
      const key = `${rank}/${tier}/${hash}`;
      const count = (this.#copies.get(key)?.count ?? 0) + 1;
      const tokensHash = tokens[block] as bigint;
      this.#copies.set(key, { count, tokensHash });
      const parent = block === 0 ? op.parent : (op.hashes[block - 1] as bigint);
      const image = shownImage(mmInfoOf(op.images[block] ?? null));
      const { sessionId } = op;
      this.effects.push({ kind: 'S', rank, tier, hash, tokensHash, parent, image, sessionId });
    }
  }

  #remove(rank: number, tier: StorageTier, hashes: readonly bigint[]): void {
    for (const hash of hashes) {
      const key = `${rank}/${tier}/${hash}`;
      const copies = this.#copies.get(key);
      if (copies !== undefined && copies.count > 0) copies.count--;
      this.effects.push({ ...NO_BLOCK, kind: 'R', rank, tier, hash });
      const isGone = this.#compat === 'safe' && (copies?.count ?? 0) === 0;
      const saltKey = this.#saltKey(rank, tier, hash);
      if (isGone || this.#salts.get(saltKey) !== AMBIGUOUS) this.#salts.delete(saltKey);
    }
  }

  #saltKey(rank: number, tier: StorageTier, hash: bigint): string {
    // Tiers below those two keep no salts: nothing is inherited or forgotten there.
    const place = this.#compat === 'safe' || !hasSalts(tier) ? tier : 'any';
    return `${rank}/${place}/${hash}`;
  }

  #saltOf(rank: number, tier: StorageTier, op: StoreOp): string | null | typeof AMBIGUOUS {
    if (!hasSalts(tier)) return op.salt;
    const inherited =
      op.parent === null ? undefined : this.#salts.get(this.#saltKey(rank, tier, op.parent));
    const salt = op.salt ?? inherited ?? null;
    if (salt === AMBIGUOUS) return AMBIGUOUS;
    for (const hash of op.hashes) {
      const key = this.#saltKey(rank, tier, hash);
      const known = this.#salts.get(key);
      if (known === undefined && salt !== null) this.#salts.set(key, salt);
      else if (known !== undefined && known !== salt) this.#salts.set(key, AMBIGUOUS);
    }
    return salt;
  }
}

function hasSalts(tier: StorageTier): boolean {
  return tier === 'device' || tier === 'host_pinned';
}

// ── The properties ────────────────────────────────────────────────────────────────────────────────

/** Few blocks on few tiers, so that each is under several salts in its time. */
const INHERITED = {
  salts: 'some',
  hashes: 6,
  media: ['GPU', 'GPU', 'GPU', 'CPU', 'DISK'],
} as const;

interface Histories {
  readonly compat: Compat;
  readonly batches: fc.Arbitrary<History>;
  readonly timeoutsMs: readonly number[];
}

/** In safe a relay has one rank. */
const HISTORIES: Readonly<Record<string, Histories>> = {
  'strict, three ranks': {
    compat: 'strict',
    batches: history({ ranks: 3 }),
    timeoutsMs: [0, 0, 5],
  },
  'strict, salts that children inherit': {
    compat: 'strict',
    batches: history({ ...INHERITED, ranks: 2 }),
    timeoutsMs: [0, 0, 5],
  },
  'safe, no salts': {
    compat: 'safe',
    batches: history(),
    timeoutsMs: [0, 0, 5],
  },
  'safe, a salt on each store': {
    compat: 'safe',
    batches: history({ salts: 'each' }),
    timeoutsMs: [0, 0, 5],
  },
  'safe, salts that children inherit, an event a message': {
    compat: 'safe',
    batches: history({ ...INHERITED, maxBatches: 80, maxEvents: 1 }),
    timeoutsMs: [0],
  },
};

describe.each(Object.entries(HISTORIES))('%s', (_, { compat, batches, timeoutsMs }) => {
  const timeout = fc.constantFrom(...timeoutsMs);

  test('what leaves, taken as a set, is what the engine counts', () => {
    let blocks = 0;
    fc.assert(
      fc.property(batches, timeout, (given, timeoutMs) => {
        const { relay, effects } = played(compat, given, { timeoutMs });
        const { held } = new Model(compat, given);
        expect(foldAsSet(effects)).toEqual(held);
        blocks += Object.keys(held).length;
        relay.indexer.free();
      }),
      runs,
    );
    expect(blocks).toBeGreaterThan(runs.numRuns);
  });

  test('blocks leave in the order of the engine, with all it said; only removes are left out', () => {
    // In strict an empty store can lend its parent to the root store behind it.
    const line = (effect: BlockEffect): string =>
      shown(compat === 'strict' ? { ...effect, parent: null } : effect);
    const isNoRemove = (one: string): boolean => !one.startsWith('R');
    fc.assert(
      fc.property(batches, timeout, (given, timeoutMs) => {
        const left = played(compat, given, { timeoutMs }).effects.map(line);
        const engine = new Model(compat, given).effects.map(line);
        expect(left.filter(isNoRemove)).toEqual(engine.filter(isNoRemove));
        expect(isSubsequence(left, engine)).toBe(true);
      }),
      runs,
    );
  });

  test('ids count from 1 and sequence numbers from 0, without holes', () => {
    fc.assert(
      fc.property(batches, timeout, (given, timeoutMs) => {
        const { events, relay } = played(compat, given, { timeoutMs });
        expect(events.map(({ event }) => Number(event.event_id))).toEqual(
          tokensFrom(1, events.length),
        );
        const sequences = relay.published.map(({ sequence }) => sequence);
        expect(sequences).toEqual(tokensFrom(0, sequences.length));
      }),
      runs,
    );
  });

  test('without a timeout, when messages arrive changes nothing', () => {
    fc.assert(
      fc.property(batches, (given) => {
        const atOnce = played(compat, given, { withPauses: false });
        expect(played(compat, given, { withPauses: true }).payloads).toEqual(atOnce.payloads);
      }),
      runs,
    );
  });
});

function isSubsequence(part: readonly string[], whole: readonly string[]): boolean {
  let at = 0;
  for (const one of whole) if (one === part[at]) at++;
  return at === part.length;
}

test('a clear empties all tiers of its rank and touches no other', () => {
  let emptied = 0;
  fc.assert(
    fc.property(history({ ranks: 3 }), fc.nat(2), (given, rank) => {
      const run = new Played('strict').push(given);
      const before = foldAsSet(run.effects);
      const eventsBefore = run.events.length;
      const clear: Op = { kind: 'clear', form: { asMap: true, signed: false } };
      run.push([{ rank, pauseMs: 0, events: [clear] }]);
      const isOther = ([key]: [string, bigint]): boolean => !key.startsWith(`${rank}/`);
      const others = Object.fromEntries(Object.entries(before).filter(isOther));
      expect(foldAsSet(run.effects)).toEqual(others);
      const [cleared, ...more] = run.events.slice(eventsBefore);
      expect(cleared).toMatchObject({
        storage_tier: 'device',
        event: { data: 'cleared', dp_rank: rank },
      });
      expect(more).toEqual([]);
      expect(dumpOf(run.relay.indexer.blocks).filter((event) => event.rank === rank)).toEqual([]);
      emptied += Object.keys(before).length - Object.keys(others).length;
      run.stop();
    }),
    runs,
  );
  expect(emptied).toBeGreaterThan(runs.numRuns);
});

test('merging more or fewer blocks leaves routers with the same', () => {
  let merged = 0;
  fc.assert(
    fc.property(
      fc.oneof(history(), history({ salts: 'each' })),
      fc.constantFrom(0, 5),
      (given, timeoutMs) => {
        const apart = played('safe', given, { timeoutMs, maxBatchBlocks: 1 });
        const joined = played('safe', given, { timeoutMs, maxBatchBlocks: 128 });
        expect(foldAsSet(joined.effects)).toEqual(foldAsSet(apart.effects));
        merged += apart.events.length - joined.events.length;
      },
    ),
    runs,
  );
  expect(merged).toBeGreaterThan(runs.numRuns);
});

/** Stores of up to 150 blocks, of which 40 fill a message of 2 KB; session ids of any script. */
const LARGE = history({
  hashes: 400,
  maxBlocks: 150,
  maxBatches: 6,
  sessionIds: [null, 'chat-1', '会话'.repeat(20), 'é'.repeat(150)],
});

test.each([2048, 16_384])('splitting at %i bytes changes ids and messages alone', (limit) => {
  let parts = 0;
  fc.assert(
    fc.property(LARGE, (given) => {
      const whole = played('safe', given, { maxMessageBytes: 1 << 20 });
      const split = played('safe', given, { maxMessageBytes: limit });
      expect(split.effects.map(shown)).toEqual(whole.effects.map(shown));
      expect(split.events.map(({ event }) => Number(event.event_id))).toEqual(
        tokensFrom(1, split.events.length),
      );
      const { relay } = split;
      const sequences = relay.published.map(({ sequence }) => sequence);
      expect(sequences).toEqual(tokensFrom(0, sequences.length));
      expect(Math.max(0, ...relay.envelopeBytes)).toBeLessThanOrEqual(limit);
      expect(relay.metrics.publishFailures.payload_too_large).toBe(0);
      parts += split.events.length - whole.events.length;
    }),
    { ...runs, numRuns: Math.ceil(runs.numRuns / 2) },
  );
  if (limit < 16_384) expect(parts).toBeGreaterThan(runs.numRuns);
});

test('strict and safe are byte-equal where nothing of what sets them apart occurs', () => {
  const plain = { media: MEDIA, emptyStores: false };
  const batches = fc.oneof(history(plain), history({ ...plain, salts: 'each' }));
  let messages = 0;
  fc.assert(
    fc.property(batches, fc.constantFrom(0, 5), (given, timeoutMs) => {
      const strict = played('strict', given, { timeoutMs });
      expect(played('safe', given, { timeoutMs }).payloads).toEqual(strict.payloads);
      messages += strict.payloads.length;
    }),
    runs,
  );
  expect(messages).toBeGreaterThan(runs.numRuns);
});
