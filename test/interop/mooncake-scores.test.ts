/**
 * Prompts whose blocks lie in Mooncake Store behind what the device has: what a stock router scores is what a plain
 * model of engine and store says. The store is the real master with a real client.
 */
import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { fixedSeed } from '../support/properties.ts';
import { seededRandom } from '../support/router-streams.ts';
import { hasDynamo, type OverlapScores } from './dynamo-peers.ts';
import { MooncakeClient, MooncakeMaster, mooncakeAvailable } from './mooncake-peers.ts';
import { makePlace } from './places.ts';
import { expectSame, RelayHere, startPeer, until } from './router-trial.ts';

const BLOCK_TOKENS = 4;
const MAX_BLOCKS = 6;
const ROUNDS = 3;
const PROMPTS_A_ROUND = 30;

/** Leading blocks on the device, and those that follow in the store. */
interface Score {
  readonly device: number;
  readonly store: number;
}

/** The hash that ends these tokens, as an engine names the block: the last 8 bytes count. */
function hashOf(tokens: readonly number[]): Buffer {
  return createHash('sha256').update(tokens.join()).digest();
}

function nameOf(tokens: readonly number[]): bigint {
  return hashOf(tokens).readBigUInt64BE(24);
}

/** As vLLM's connector writes it. */
function keyOf(tokens: readonly number[]): string {
  return `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${hashOf(tokens).toString('hex')}`;
}

function blocksOf(tokens: readonly number[]): number[][] {
  const count = tokens.length / BLOCK_TOKENS;
  return Array.from({ length: count }, (_, at) => tokens.slice(0, (at + 1) * BLOCK_TOKENS));
}

class Model {
  readonly prompts: number[][] = [];
  /** By the tokens up to the block's end. */
  readonly device = new Set<string>();
  readonly store = new Set<string>();
  /** What the engine has shown once: only of those it is known where they stand. */
  readonly shown = new Set<string>();
  readonly #random = seededRandom(fixedSeed.seed);

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Often the start of one that is there, with another end. */
  newPrompt(): number[] {
    const other = this.prompts[this.below(this.prompts.length)] ?? [];
    const kept = this.below(other.length / BLOCK_TOKENS + 1) * BLOCK_TOKENS;
    const more = (1 + this.below(MAX_BLOCKS)) * BLOCK_TOKENS;
    const tokens = Array.from({ length: more }, () => this.below(1e5));
    const prompt = [...other.slice(0, kept), ...tokens];
    this.prompts.push(prompt);
    return prompt;
  }

  anyPrompt(): number[] {
    return this.prompts[this.below(this.prompts.length)] ?? [];
  }

  isShared(block: readonly number[]): boolean {
    const own = block.join();
    return this.prompts.filter((one) => one.slice(0, block.length).join() === own).length > 1;
  }

  score(tokens: readonly number[]): Score {
    const ends = blocksOf(tokens).map((block) => block.join());
    const leave = ends.findIndex((end) => !this.device.has(end));
    const device = leave === -1 ? ends.length : leave;
    const rest = ends.slice(device);
    const gap = rest.findIndex((end) => !this.store.has(end) || !this.shown.has(end));
    return { device, store: gap === -1 ? rest.length : gap };
  }
}

function scoreOf({ workers }: OverlapScores): Score {
  const [row] = workers;
  return { device: row?.device_blocks ?? 0, store: row?.disk_extension_blocks ?? 0 };
}

describe.skipIf(!hasDynamo() || !mooncakeAvailable())('a stock router', () => {
  test('scores prompts in Mooncake Store and on the device as they lie there', async () => {
    const master = await MooncakeMaster.start();
    onTestFinished(() => master.stop());
    const client = await MooncakeClient.start(master);
    onTestFinished(() => client.stop());
    const place = await makePlace({ eventPlane: 'zmq', blockSize: BLOCK_TOKENS });
    await startPeer('dynamo_worker', place.shared);
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const relay = await RelayHere.startIn(place, engine.endpoint, [
      `--mooncake-endpoint=${master.endpoint}`,
      `--mooncake-master=${master.adminUrl}`,
      '--mooncake-key-pattern=vllm',
    ]);
    await engine.subscribed();
    const router = await startPeer('dynamo_router', place.shared);
    const model = new Model();
    let sequence = 0;
    const send = (event: unknown): Promise<void> =>
      engine.send(batchFrames(batch([event]), sequence++));

    const toDevice = async (tokens: readonly number[]): Promise<void> => {
      const blocks = blocksOf(tokens);
      for (const block of blocks) {
        model.device.add(block.join());
        model.shown.add(block.join());
      }
      await send(storeEvent(blocks.map(nameOf), null, { token_ids: tokens }));
    };
    const toStore = async (tokens: readonly number[]): Promise<void> => {
      const blocks = blocksOf(tokens).filter((block) => !model.store.has(block.join()));
      for (const block of blocks) model.store.add(block.join());
      if (blocks.length > 0) await client.ask({ op: 'put', keys: blocks.map(keyOf) });
    };
    /** The last blocks go, nobody else having them: the device tier of a router is a tree. */
    const offDevice = async (tokens: readonly number[]): Promise<void> => {
      const own = blocksOf(tokens)
        .reverse()
        .filter((block) => model.device.has(block.join()) && !model.isShared(block));
      const gone = own.slice(0, model.below(own.length + 1));
      for (const block of gone) model.device.delete(block.join());
      if (gone.length > 0) await send(removeEvent(gone.map(nameOf)));
    };
    const offStore = async (tokens: readonly number[]): Promise<void> => {
      const held = blocksOf(tokens).filter((block) => model.store.has(block.join()));
      const block = held[model.below(held.length)];
      if (block === undefined) return;
      model.store.delete(block.join());
      await client.ask({ op: 'remove', key: keyOf(block) });
    };

    const seen = { store: 0, both: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      for (let count = 0; count < PROMPTS_A_ROUND; count++) {
        const prompt = model.newPrompt();
        // The store may be told of first, and of some the engine never tells.
        const steps = [toStore, toDevice].slice(0, 1 + model.below(2));
        for (const step of model.below(2) === 0 ? steps : steps.reverse()) await step(prompt);
        if (count % 2 === 0) await offStore(model.anyPrompt());
        await offDevice(model.anyPrompt());
      }
      if (round === 1) {
        // All tiers are forgotten, and what the store holds comes again.
        model.device.clear();
        await send({ type: 'AllBlocksCleared' });
      }
      await relay.passed(sequence - 1);
      await until(() => relay.worker.status().sources[0]?.objects === model.store.size);
      await expectSame(router, relay);
      const prompts = model.prompts.map((tokens) => ({ tokens }));
      await vi.waitFor(
        async () => {
          const scores = (await router.askScores(prompts)).map(scoreOf);
          expect(scores).toEqual(model.prompts.map((one) => model.score(one)));
        },
        { timeout: 20_000, interval: 200 },
      );
      for (const prompt of model.prompts) {
        const { device, store } = model.score(prompt);
        if (store > 0) seen[device > 0 ? 'both' : 'store']++;
      }
    }
    console.log(`prompts found in the store: ${JSON.stringify(seen)}`);
    expect(Math.min(seen.store, seen.both)).toBeGreaterThan(10);
  }, 120_000);
});
