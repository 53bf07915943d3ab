/** What a stock router makes of prompts, beside what `/api/match` of the relay that it follows says. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { STORAGE_TIERS, type StorageTier } from '../../src/protocol/storage-tier.ts';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { fixedSeed } from '../support/properties.ts';
import { TieredCache } from '../support/tiered-cache.ts';
import { hasDynamo, type OverlapScores, type Prompt } from './dynamo-peers.ts';
import { makePlace } from './places.ts';
import { expectSame, RelayHere, startPeer } from './router-trial.ts';

const RANKS = 2;
const EVENTS = 1500;
const PROMPTS = 200;

/** Blocks of one rank, as far apart as a router tells them. */
interface Score {
  readonly rank: number;
  readonly device: number;
  readonly hostPinned: number;
  readonly diskAndExternal: number;
}

/** Starts of what was stored, cut anywhere, with or without something else behind them. */
function makePrompts(caches: readonly TieredCache[]): Prompt[] {
  return Array.from({ length: PROMPTS }, (_, at) => {
    const cache = caches[at % caches.length] as TieredCache;
    const stored = cache.anyPrompt();
    // Some come under another adapter or salt, where the same tokens are other blocks.
    const { loraName, salt } = at % 5 === 0 ? cache.anyPrompt() : stored;
    const kept = cache.below(3) > 0 ? stored.tokens.length : cache.below(stored.tokens.length + 1);
    const behind =
      [[], cache.tokens(cache.below(20)), cache.anyPrompt().tokens][cache.below(3)] ?? [];
    return {
      tokens: [...stored.tokens.slice(0, kept), ...behind],
      ...(loraName === null ? {} : { lora_name: loraName }),
      ...(salt === null ? {} : { cache_salt: salt }),
    };
  });
}

function scoresOf({ workers }: OverlapScores): Score[] {
  return workers
    .map((row) => ({
      rank: row.dp_rank,
      device: row.device_blocks,
      hostPinned: row.host_pinned_extension_blocks,
      diskAndExternal: row.disk_extension_blocks,
    }))
    .sort((a, b) => a.rank - b.rank);
}

interface Match {
  readonly dp_rank: number;
  readonly blocks: Readonly<Record<StorageTier, number>>;
}

async function matchOf({ httpUrl }: RelayHere, prompt: Prompt): Promise<readonly Match[]> {
  const body = JSON.stringify(prompt);
  const response = await fetch(`${httpUrl}/api/match`, { method: 'POST', body });
  return ((await response.json()) as { readonly ranks: readonly Match[] }).ranks;
}

function scoreOf({ dp_rank: rank, blocks }: Match): Score {
  const { device, host_pinned: hostPinned, disk, external } = blocks;
  return { rank, device, hostPinned, diskAndExternal: disk + external };
}

describe.skipIf(!hasDynamo())('a stock router', () => {
  test('scores 200 prompts as /api/match does, two ranks, adapters and salts, tier by tier', async () => {
    const place = await makePlace({ eventPlane: 'zmq' });
    const ranks = ['--dp-size', `${RANKS}`];
    await startPeer('dynamo_worker', [...place.shared, ...ranks]);
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const flags = [...ranks, '--engine-sockets', 'shared'];
    const relay = await RelayHere.startIn(place, engine.endpoint, flags);
    await engine.subscribed();
    const router = await startPeer('dynamo_router', place.shared);

    // Ranks meet in the router's tree, where blocks that leave are a case of its own; see below.
    const shared = new TieredCache(fixedSeed.seed);
    const own = [new TieredCache(fixedSeed.seed + 1), new TieredCache(fixedSeed.seed + 2)];
    for (let sequence = 0; sequence < EVENTS; sequence++) {
      const rank = sequence % RANKS;
      const events = [own[rank]?.nextEvent(), ...(sequence % 5 === 0 ? [shared.nextStore()] : [])];
      await engine.send(batchFrames(batch(events, rank), sequence));
    }
    await relay.passed(EVENTS - 1);
    expect((await expectSame(router, relay)).length).toBeGreaterThan(1000);

    const prompts = makePrompts([shared, ...own]);
    const answers = await router.askScores(prompts);
    const found = { device: 0, host_pinned: 0, disk: 0, external: 0, several: 0, special: 0 };
    for (const [at, prompt] of prompts.entries()) {
      const matches = await matchOf(relay, prompt);
      const scores = scoresOf(answers[at] as OverlapScores);
      expect({ prompt, scores: matches.map(scoreOf) }).toEqual({ prompt, scores });
      const isSpecial = prompt.lora_name !== undefined || prompt.cache_salt !== undefined;
      for (const { blocks } of matches) {
        for (const tier of STORAGE_TIERS) if (blocks[tier] > 0) found[tier]++;
        if (Object.values(blocks).filter((count) => count > 0).length > 2) found.several++;
        if (isSpecial && blocks.device > 0) found.special++;
      }
    }
    console.log(`prompts with blocks on a tier: ${JSON.stringify(found)}`);
    // Else it was no trial of that tier, of several together, or of adapters and salts.
    expect(Math.min(...Object.values(found))).toBeGreaterThan(5);
  });

  test('that knows a chain from two ranks keeps, while one has it, what hangs below a block the other drops', async () => {
    const place = await makePlace({ eventPlane: 'zmq' });
    await startPeer('dynamo_worker', [...place.shared, '--dp-size', '2']);
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const flags = ['--dp-size', '2', '--engine-sockets', 'shared'];
    const relay = await RelayHere.startIn(place, engine.endpoint, flags);
    await engine.subscribed();
    const router = await startPeer('dynamo_router', place.shared);
    let sequence = 0;
    const send = async (dpRank: number, event: unknown): Promise<void> => {
      await engine.send(batchFrames(batch([event], dpRank), sequence));
      await relay.passed(sequence++);
    };
    const tokens = tokensFrom(1, 16);
    for (const dpRank of [0, 1]) {
      await send(dpRank, storeEvent([1, 2, 3, 4], null, { token_ids: tokens }));
      await send(dpRank, storeEvent([5], 2));
    }
    expect(await expectSame(router, relay)).toHaveLength(10);
    await send(0, removeEvent([2]));
    // Of a router that knows rank 0 alone all but the first block would be gone, as from the relay's index.
    const ofRankZero = async (): Promise<number[]> => {
      const rows = await router.askIndex();
      const hashes = rows.flatMap((row) => (row[1] === 0 ? [Number(row[4])] : []));
      return hashes.sort((a, b) => a - b);
    };
    await vi.waitUntil(async () => (await ofRankZero()).length < 5, 10_000);
    expect(await ofRankZero()).toEqual([1, 3, 4, 5]);
    const scored = async (): Promise<number[]> => {
      const [scores] = await router.askScores([{ tokens }]);
      return scoresOf(scores as OverlapScores).map(({ device }) => device);
    };
    const matched = async (): Promise<number[]> =>
      (await matchOf(relay, { tokens })).map(({ blocks }) => blocks.device);
    expect([await scored(), await matched()]).toEqual([
      [1, 4],
      [1, 4],
    ]);
    // The block comes back, and with it what the router has kept.
    await send(0, storeEvent([1, 2], null, { token_ids: tokens.slice(0, 8) }));
    await vi.waitUntil(async () => (await scored())[0] !== 1, 10_000);
    expect([await scored(), await matched()]).toEqual([
      [4, 4],
      [2, 4],
    ]);
  });
});
