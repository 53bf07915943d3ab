/**
 * Chunks of 16 tokens, as LMCache announces them on the host tier, where a block of ours has 4: what
 * routers see of them, and the cutter alone where a relay of one rank cannot show it.
 */
import { unpack } from 'msgpackr';
import { EMPTY } from 'rxjs';
import { expect, test } from 'vitest';
import { arena } from '../../src/kernel/arena.ts';
import { U64List } from '../../src/kernel/u64-list.ts';
import { ChunkCutter } from '../../src/processor/chunk-cutter.ts';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from '../support/batches.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from '../support/scenarios.ts';

interface Seen {
  kind: 'stored' | 'removed' | 'cleared';
  tier: string;
  parent: bigint | null;
  hashes: bigint[];
  tokensHashes: bigint[];
}

interface WireEvent {
  storage_tier: string;
  event: {
    data:
      | 'cleared'
      | { removed: { block_hashes: number[] } }
      | {
          stored: {
            parent_hash: number | null;
            blocks: Record<'block_hash' | 'tokens_hash', number>[];
          };
        };
  };
}

function seenOf({ storage_tier: tier, event: { data } }: WireEvent): Seen {
  const none = { tier, parent: null, hashes: [], tokensHashes: [] };
  if (data === 'cleared') return { ...none, kind: 'cleared' };
  if ('removed' in data) {
    return { ...none, kind: 'removed', hashes: data.removed.block_hashes.map(BigInt) };
  }
  const { parent_hash, blocks } = data.stored;
  return {
    kind: 'stored',
    tier,
    parent: parent_hash === null ? null : BigInt(parent_hash),
    hashes: blocks.map((block) => BigInt(block.block_hash)),
    tokensHashes: blocks.map((block) => BigInt(block.tokens_hash)),
  };
}

/** Relays one batch for each list of events. */
function play(...batches: unknown[][]): { seen: Seen[]; relay: InProcessRelay } {
  const relay = new InProcessRelay(pipelineConfigOf(PLAIN_SETTINGS, 'safe'));
  for (const [sequence, events] of batches.entries()) {
    relay.push(batchFrames(batch(events), sequence));
  }
  relay.stop();
  const events = relay.published.flatMap(({ payload }) => unpack(payload) as WireEvent[]);
  return { seen: events.map(seenOf), relay };
}

/** Chunks of 16 tokens each, the first token given. */
function chunkStore(
  hashes: readonly number[],
  parent: number | null = null,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  const tokens = tokensFrom(1000, hashes.length * 16);
  return storeEvent(hashes, parent, {
    token_ids: tokens,
    block_size: 16,
    medium: 'CPU',
    ...fields,
  });
}

const chunkRemove = (hashes: readonly number[], medium = 'CPU'): Record<string, unknown> =>
  removeEvent(hashes, { medium });

/** The hashes of the blocks that one chunk becomes. */
function blocksOf(chunk: number): bigint[] {
  const { seen } = play([chunkStore([chunk])]);
  return seen[0]?.hashes ?? [];
}

test.each(['CPU', 'cpu', 'Cpu'])('medium %s: chunks become blocks under one another', (medium) => {
  const { seen, relay } = play([chunkStore([901, 902], 7, { medium })]);
  const [store] = seen;
  expect(seen).toHaveLength(1);
  expect(store).toMatchObject({ kind: 'stored', tier: 'host_pinned', parent: 7n });
  // The last block of a chunk has the chunk's own hash, the others hashes that nothing else has.
  expect(store?.hashes).toHaveLength(8);
  expect([store?.hashes[3], store?.hashes[7]]).toEqual([901n, 902n]);
  expect(new Set(store?.hashes).size).toBe(8);
  expect(relay.metrics.emptyStores).toBe(0);
});

test("the blocks' tokens hashes are those of the same tokens in the engine's own blocks", () => {
  const tokens = tokensFrom(1000, 32);
  const fields = { lora_name: 'ad-1', cache_salt: 'tenant-a' };
  const blocks = play([
    storeEvent([1, 2, 3, 4, 5, 6, 7, 8], null, { token_ids: tokens, ...fields }),
  ]);
  const chunks = play([chunkStore([901, 902], null, fields)]);
  expect(chunks.seen[0]?.tokensHashes).toEqual(blocks.seen[0]?.tokensHashes);
  expect(new Set(chunks.seen[0]?.tokensHashes).size).toBe(8);
});

test('a chunk finds its parent in the last block of the one before, and its salt', () => {
  const salted = { cache_salt: 'tenant-a' };
  const { seen } = play([chunkStore([901], null, salted)], [chunkStore([902], 901)]);
  const [, second] = seen;
  expect(second).toMatchObject({ parent: 901n, hashes: blocksOf(902) });
  expect(second?.tokensHashes).toEqual(seen[0]?.tokensHashes);
  const joined = play([chunkStore([901], null, salted), chunkStore([902], 901)]).seen;
  expect(joined.map(({ hashes }) => hashes)).toEqual([[...blocksOf(901), ...blocksOf(902)]]);
});

test.each(['CPU', 'cpu', 'CPU_PINNED'])(
  'a remove on %s takes all blocks of its chunks',
  (medium) => {
    const { seen, relay } = play(
      [chunkStore([901, 902])],
      [chunkRemove([902], medium)],
      [chunkRemove([901], medium)],
    );
    expect(seen.slice(1)).toMatchObject([
      { kind: 'removed', tier: 'host_pinned', hashes: blocksOf(902) },
      { kind: 'removed', tier: 'host_pinned', hashes: blocksOf(901) },
    ]);
    expect(relay.metrics.liveBlocks.host_pinned).toBe(0);
    expect(relay.metrics.trackedBlocks.host_pinned).toBe(0);
  },
);

test('chunks and blocks may be named in one remove; their order stays', () => {
  const blocks = storeEvent([1, 2], null, { medium: 'CPU' });
  const { seen } = play([chunkStore([901]), blocks], [chunkRemove([2, 901, 77, 1])]);
  expect(seen.at(-1)?.hashes).toEqual([2n, ...blocksOf(901), 77n, 1n]);
});

test('a chunk that was stored twice goes with its second remove', () => {
  const once = [chunkRemove([901])];
  const { seen, relay } = play([chunkStore([901])], [chunkStore([901])], once, once, once);
  expect(seen.map(({ kind, hashes }) => [kind, hashes.length])).toEqual([
    ['stored', 4],
    ['stored', 4],
    ['removed', 4],
    // Nobody holds it any more: what the engine says is passed on as it is.
    ['removed', 1],
  ]);
  expect(seen[2]?.hashes).toEqual(blocksOf(901));
  expect(relay.metrics.suppressedRemoves).toBe(4);
  expect(relay.metrics.liveBlocks.host_pinned).toBe(0);
});

test('one remove can name both copies', () => {
  const { seen } = play([chunkStore([901])], [chunkStore([901])], [chunkRemove([901, 901])]);
  expect(seen.at(-1)).toMatchObject({ kind: 'removed', hashes: blocksOf(901) });
});

test('a last chunk that its tokens do not fill is left out, as if it had never come', () => {
  for (const tokenCount of [16, 20, 28, 31]) {
    const { seen, relay } = play(
      [chunkStore([901, 902], null, { token_ids: tokensFrom(1000, tokenCount) })],
      [chunkRemove([902])],
      [chunkRemove([901])],
    );
    expect(seen.map(({ hashes }) => hashes)).toEqual([blocksOf(901), [902n], blocksOf(901)]);
    expect(relay.metrics.liveBlocks.host_pinned).toBe(0);
  }
  const { seen, relay } = play([chunkStore([901], null, { token_ids: tokensFrom(1000, 15) })]);
  expect(seen).toEqual([]);
  expect(relay.metrics.emptyStores).toBe(1);
});

test('tokens behind the last chunk are not looked at', () => {
  const { seen } = play([chunkStore([901], null, { token_ids: tokensFrom(1000, 40) })]);
  expect(seen.map(({ hashes }) => hashes)).toEqual([blocksOf(901)]);
});

test.each([0, 1, 2, 3, 5, 6, 10, 15, 18])('a block size of %i publishes nothing', (blockSize) => {
  const { seen, relay } = play([chunkStore([901, 902], null, { block_size: blockSize })]);
  expect(seen).toEqual([]);
  expect(relay.metrics.emptyStores).toBe(1);
});

test.each(['GPU', 'gpu', null, 'DISK', 'EXTERNAL', 'CPU_PINNED', 'CPU_TIER1', 'CPU_TIER2'])(
  'on medium %s a larger multiple publishes nothing',
  (medium) => {
    const { seen, relay } = play([chunkStore([901], null, { medium })]);
    expect(seen).toEqual([]);
    expect(relay.metrics.emptyStores).toBe(1);
  },
);

test("a remove on another tier takes the block of that tier, not the chunk's", () => {
  const { seen, relay } = play([chunkStore([901]), storeEvent([901])], [removeEvent([901])]);
  expect(seen.at(-1)).toMatchObject({ kind: 'removed', tier: 'device', hashes: [901n] });
  expect(relay.metrics.liveBlocks.host_pinned).toBe(4);
});

test('a clear forgets the chunks: a remove behind it names the chunk alone', () => {
  const clear = { type: 'AllBlocksCleared' };
  const { seen, relay } = play([chunkStore([901]), clear], [chunkRemove([901])]);
  expect(seen.map(({ kind, hashes }) => [kind, hashes.length])).toEqual([
    ['stored', 4],
    ['cleared', 0],
    ['removed', 1],
  ]);
  expect(relay.metrics.liveBlocks.host_pinned).toBe(0);
});

test('two chunk sizes side by side are each removed by their own', () => {
  const wide = chunkStore([801], null, { token_ids: tokensFrom(1000, 32), block_size: 32 });
  const { seen } = play([chunkStore([901]), wide], [chunkRemove([801])], [chunkRemove([901])]);
  expect(seen.slice(2).map(({ hashes }) => hashes.length)).toEqual([8, 4]);
});

function expanded(cutter: ChunkCutter, dpRank: number, hash: bigint): bigint[] {
  return cutter.expandRemoved(dpRank, 'host_pinned', U64List.of(hash)).toBigInts();
}

test('ChunkCutter keeps ranks apart, and forgets one at a time', () => {
  arena.reset();
  const cutter = new ChunkCutter(1000);
  const blocks = cutter.cut(0, U64List.of(901n), 4)?.toBigInts();
  cutter.cut(1, U64List.of(902n), 4);
  expect(expanded(cutter, 1, 901n)).toEqual([901n]);
  cutter.forgetRank(1);
  expect(expanded(cutter, 1, 902n)).toEqual([902n]);
  expect(expanded(cutter, 0, 901n)).toEqual(blocks);
  cutter.free();
});

test('ChunkCutter takes no more than 8 chunk sizes a rank', () => {
  arena.reset();
  const cutter = new ChunkCutter(1000);
  const cut = (factor: number): number | undefined =>
    cutter.cut(0, U64List.of(BigInt(factor)), factor)?.length;
  expect(tokensFrom(2, 8).map(cut)).toEqual(tokensFrom(2, 8));
  expect(cut(10)).toBeUndefined();
  expect(cut(9)).toBe(9);
  expect(expanded(cutter, 0, 10n)).toEqual([10n]);
  cutter.free();
});

test('chunks that another source tells of are left out, their removal changes nothing', () => {
  const source = { observe: () => undefined, placements$: EMPTY, tellsOfChunks: true };
  const config = pipelineConfigOf(PLAIN_SETTINGS, 'safe');
  const relay = new InProcessRelay(config, undefined, 'vllm', source);
  const device = storeEvent([1, 2], null, { token_ids: tokensFrom(1000, 8) });
  for (const [sequence, event] of [device, chunkStore([901, 902]), chunkRemove([901])].entries()) {
    relay.push(batchFrames(batch([event]), sequence));
  }
  relay.stop();
  const events = relay.published.flatMap(({ payload }) => unpack(payload) as WireEvent[]);
  expect(events.map(seenOf).map(({ kind, hashes }) => [kind, hashes])).toEqual([
    ['stored', [1n, 2n]],
    ['removed', [901n]],
  ]);
  expect([relay.metrics.emptyStores, relay.metrics.wrongSizeStores]).toEqual([0, 0]);
});
