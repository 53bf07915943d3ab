/** Blocks on all tiers on their whole way: an engine's events, the relay, a stock router that has the same. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { fixedSeed } from '../support/properties.ts';
import { TieredCache } from '../support/tiered-cache.ts';
import { hasDynamo } from './dynamo-peers.ts';
import { EngineDriver } from './engine-driver.ts';
import { canRun, newestOf } from './engines.ts';
import { makePlace } from './places.ts';
import { expectSame, RelayHere, startPeer } from './router-trial.ts';
import { readTruth, Truth } from './truth.ts';

const TIERS = ['device', 'host_pinned', 'disk', 'external'];

/** How many of the rows lie on each tier. */
function countByTier(rows: readonly string[]): Record<string, number> {
  const tiers = rows.map((row) => row.split(' ')[2]);
  return Object.fromEntries(
    TIERS.map((tier) => [tier, tiers.filter((one) => one === tier).length]),
  );
}

describe.skipIf(!hasDynamo())('a stock router', () => {
  test('has what the relay has on each tier, whatever leaves where and is cleared when', async () => {
    const place = await makePlace({ eventPlane: 'nats' });
    await startPeer('dynamo_worker', place.shared);
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const relay = await RelayHere.startIn(place, engine.endpoint);
    await engine.subscribed();
    const router = await startPeer('dynamo_router', place.shared);
    const cache = new TieredCache(fixedSeed.seed);
    let sequence = 0;
    for (const eventCount of [400, 400, 400, 400]) {
      for (let event = 0; event < eventCount; event++) {
        await engine.send(batchFrames(batch([cache.nextEvent()]), sequence++));
      }
      await relay.passed(sequence - 1);
      const held = countByTier(await expectSame(router, relay));
      expect(Math.min(...Object.values(held))).toBeGreaterThan(50);
      // The next events go on from a cache that the engine has cleared under them.
      await engine.send(batchFrames(batch([{ type: 'AllBlocksCleared' }]), sequence++));
    }
    for (let event = 0; event < 100; event++) {
      await engine.send(batchFrames(batch([cache.nextEvent()]), sequence++));
    }
    await relay.passed(sequence - 1);
    expect((await expectSame(router, relay)).length).toBeGreaterThan(100);
    await expectSame(await startPeer('dynamo_router', place.shared), relay);
  });
});

const vllm = newestOf('vllm');

interface RankStream {
  readonly dpRank: number;
  readonly flags: readonly string[];
}

/** One rank with vLLM's own cache, which evicts; one with vLLM's own publisher over all tiers. */
const STREAMS: readonly RankStream[] = [
  {
    dpRank: 0,
    flags: '--source manager --capacity 300 --loras 2 --batches 2300 --events-per-batch 2'.split(
      ' ',
    ),
  },
  {
    dpRank: 1,
    flags:
      '--media GPU,CPU,DISK,EXTERNAL --capacity 800 --loras 2 --p-clear 0.0005 --batches 3000'.split(
        ' ',
      ),
  },
];

describe.skipIf(!hasDynamo() || !canRun(vllm))('a stock router behind vLLM', () => {
  test('has what the relay has of a cache that evicts, and of one on all tiers beside it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kvrelay-tiers-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const truthOf = (rank: number): string => join(folder, `${rank}.jsonl`);
    const place = await makePlace({ eventPlane: 'zmq', blockSize: 16 });
    await startPeer('dynamo_worker', [...place.shared, '--dp-size', '2']);
    const ports = { port: await freePorts(2), replayPort: await freePorts(2) };
    const engines = await Promise.all(
      STREAMS.map(async ({ dpRank, flags }) => {
        const own = ['--dp-rank', `${dpRank}`, '--truth', truthOf(dpRank), '--block-size', '16'];
        const engine = await EngineDriver.start(vllm, [...own, ...flags], ports);
        onTestFinished(() => engine.stop());
        return engine;
      }),
    );
    const replay = ['--replay-endpoint', `tcp://127.0.0.1:${ports.replayPort}`];
    const flags = ['--engine', 'vllm', '--dp-size', '2', ...replay];
    const relay = await RelayHere.startIn(place, `tcp://127.0.0.1:${ports.port}`, flags);
    await relay.ready();
    const router = await startPeer('dynamo_router', place.shared);

    for (const engine of engines) engine.go();
    for (const [index, engine] of engines.entries()) {
      await relay.passed((await engine.published()).last_seq, index);
    }
    const rows = await expectSame(router, relay);
    const truths = STREAMS.map(({ dpRank }) => new Truth(readTruth(truthOf(dpRank))));
    for (const { removals, clears } of truths) {
      expect(removals).toBeGreaterThan(1000);
      expect(clears).toBeGreaterThan(2);
    }
    const ofTiers = rows.filter((row) => row.split(' ')[1] === '1');
    expect(Math.min(...Object.values(countByTier(ofTiers)))).toBeGreaterThan(20);
    // This cache drops children first, so that nothing but what left is gone.
    const live = ofTiers
      .map((row) => row.split(' '))
      .map(([, , tier, , hash]) => `${tier} ${hash}`);
    expect(live.sort()).toEqual(truths[1]?.live());
    expect(rows.length - ofTiers.length).toBeGreaterThan(100);
    const late = await startPeer('dynamo_router', place.shared);
    await expectSame(late, relay);
  });
});
