/**
 * Prompts whose blocks are in LMCache alone, or there behind what the engine has: what a stock router scores is
 * what a plain model of engine and server says.
 */
import { createHash } from 'node:crypto';
import { blake3 } from '@noble/hashes/blake3';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { bodyOf, wireBatch } from '../support/cache-batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { fixedSeed } from '../support/properties.ts';
import { seededRandom } from '../support/router-streams.ts';
import { hasDynamo, type OverlapScores } from './dynamo-peers.ts';
import { LmcacheServer, lmcacheServerAvailable, type ServerChunk } from './lmcache-server.ts';
import { makePlace } from './places.ts';
import { expectSame, RelayHere, startPeer, until } from './router-trial.ts';

const BLOCK_TOKENS = 4;
const CHUNK_TOKENS = 8;
const MAX_CHUNKS = 4;

interface Score {
  readonly device: number;
  readonly hostPinned: number;
}

/** An engine and a server under it: prefixes on the device, chunks in L1. */
class Model {
  readonly prompts: number[][] = [];
  readonly #random = seededRandom(fixedSeed.seed);
  /** Blocks and chunks by the tokens up to their end. */
  readonly device = new Set<string>();
  readonly l1 = new Set<string>();

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Often the start of one that is there, with another end. */
  newPrompt(): number[] {
    const other = this.prompts[this.below(this.prompts.length)] ?? [];
    const kept = this.below(other.length / CHUNK_TOKENS + 1) * CHUNK_TOKENS;
    const more = (1 + this.below(MAX_CHUNKS)) * CHUNK_TOKENS;
    const prompt = [
      ...other.slice(0, kept),
      ...Array.from({ length: more }, () => this.below(1e5)),
    ];
    this.prompts.push(prompt);
    return prompt;
  }

  score(tokens: readonly number[]): Score {
    const blocks = Math.floor(tokens.length / BLOCK_TOKENS);
    const end = (block: number): string => tokens.slice(0, (block + 1) * BLOCK_TOKENS).join();
    const chunkOf = (block: number): string =>
      tokens.slice(0, chunkEnd((block + 1) * BLOCK_TOKENS)).join();
    let device = 0;
    while (device < blocks && this.device.has(end(device))) device++;
    let all = device;
    while (all < blocks && this.l1.has(chunkOf(all))) all++;
    return { device, hostPinned: all - device };
  }
}

function chunkEnd(tokens: number): number {
  return Math.ceil(tokens / CHUNK_TOKENS) * CHUNK_TOKENS;
}

function chunkOf(tokens: readonly number[]): ServerChunk {
  const before = tokens.slice(0, tokens.length - CHUNK_TOKENS);
  return {
    model: 'm',
    hash: hashOf(tokens),
    parent: before.length === 0 ? null : hashOf(before),
    tokens: tokens.slice(-CHUNK_TOKENS),
  };
}

/** As LMCache chains them. */
function hashOf(tokens: readonly number[]): string {
  const before = tokens.slice(0, tokens.length - CHUNK_TOKENS);
  const own = Buffer.alloc(CHUNK_TOKENS * 4);
  for (const [at, token] of tokens.slice(-CHUNK_TOKENS).entries()) own.writeUInt32BE(token, at * 4);
  const parent =
    before.length === 0 ? blake3(Buffer.alloc(12)) : Buffer.from(hashOf(before), 'hex');
  return Buffer.from(blake3(Buffer.concat([parent, own]))).toString('hex');
}

/** What a server of LMCache holds, told in one way or the other. */
interface Teller {
  readonly flags: readonly string[];
  store(chunks: readonly (readonly number[])[]): Promise<void>;
  evict(chunk: readonly number[]): Promise<void>;
}

async function streamTeller(): Promise<Teller> {
  const server = await LmcacheServer.start();
  return {
    flags: [`--lmcache-stream=${server.endpoint}`],
    store: (chunks) => server.store(...chunks.map(chunkOf)),
    evict: (chunk) => server.evict('m', hashOf(chunk)),
  };
}

/** Its coordinator batches, which name no parents. */
async function batchTeller(): Promise<Teller> {
  const address = `127.0.0.1:${await freePorts(1)}`;
  let seq = 0;
  const post = async (event_type: string, chunks: readonly (readonly number[])[]) => {
    const entries = chunks.map((tokens) => ({
      key: { chunk_hash_hex: hashOf(tokens), model_name: 'm', kv_rank: 0 },
      token_ids: tokens.slice(-CHUNK_TOKENS),
      token_offset: tokens.length - CHUNK_TOKENS,
    }));
    const body = bodyOf(wireBatch(++seq, { event_type, entries }));
    const answer = await fetch(`http://${address}/events`, { method: 'POST', body });
    expect(await answer.json()).toMatchObject({ applied: 1 });
  };
  return {
    flags: [`--lmcache-coordinator-listen=${address}`, '--lmcache-instance=mp-1'],
    store: (chunks) => post('store', chunks),
    evict: (chunk) => post('delete', [chunk]),
  };
}

/** As an engine calls the block that ends these tokens. */
function nameOf(tokens: readonly number[]): bigint {
  return createHash('sha256').update(`engine ${tokens.join()}`).digest().readBigUInt64BE();
}

describe.skipIf(!hasDynamo() || !lmcacheServerAvailable())('a stock router', () => {
  test.each([
    ['the event stream', streamTeller],
    ['coordinator batches', batchTeller],
  ])(
    'scores prompts in L1 and on the device as they lie there, told by %s',
    async (_, start) => {
      const server = await start();
      const place = await makePlace({ eventPlane: 'zmq', blockSize: BLOCK_TOKENS });
      await startPeer('dynamo_worker', place.shared);
      const engine = await EngineStub.start();
      onTestFinished(() => engine.close());
      const flags = [...server.flags, '--lmcache-model=m'];
      const relay = await RelayHere.startIn(place, engine.endpoint, flags);
      await engine.subscribed();
      const router = await startPeer('dynamo_router', place.shared);
      const model = new Model();
      let sequence = 0;
      const send = (event: unknown): Promise<void> =>
        engine.send(batchFrames(batch([event]), sequence++));

      const prefixes = (tokens: readonly number[], step: number): number[][] =>
        Array.from({ length: tokens.length / step }, (_, at) => tokens.slice(0, (at + 1) * step));
      const toDevice = async (tokens: readonly number[]): Promise<void> => {
        const blocks = prefixes(tokens, BLOCK_TOKENS);
        for (const block of blocks) model.device.add(block.join());
        await send(storeEvent(blocks.map(nameOf), null, { token_ids: tokens }));
      };
      const toServer = async (tokens: readonly number[]): Promise<void> => {
        const chunks = prefixes(tokens, CHUNK_TOKENS).filter((one) => !model.l1.has(one.join()));
        for (const chunk of chunks) model.l1.add(chunk.join());
        await server.store(chunks);
      };
      /** The last blocks go, nobody else having them: the device tier of a router is a tree. */
      const offDevice = async (tokens: readonly number[]): Promise<void> => {
        const isBranch = (block: readonly number[]): boolean =>
          model.prompts.filter((one) => one.slice(0, block.length).join() === block.join()).length >
          1;
        const blocks = prefixes(tokens, BLOCK_TOKENS).reverse();
        const own = blocks.filter((block) => model.device.has(block.join()) && !isBranch(block));
        const gone = own.slice(0, model.below(own.length + 1));
        for (const block of gone) model.device.delete(block.join());
        if (gone.length > 0) await send(removeEvent(gone.map(nameOf)));
      };
      const offServer = async (tokens: readonly number[]): Promise<void> => {
        const chunks = prefixes(tokens, CHUNK_TOKENS).filter((one) => model.l1.has(one.join()));
        const chunk = chunks[model.below(chunks.length)];
        if (chunk === undefined) return;
        model.l1.delete(chunk.join());
        await server.evict(chunk);
      };

      const seen = { host: 0, both: 0 };
      for (const round of [1, 2, 3]) {
        for (let count = 0; count < 40; count++) {
          const prompt = model.newPrompt();
          // The store may be told of before the engine, and of some the engine never tells.
          const steps = [toServer, toDevice].slice(0, 1 + model.below(2));
          for (const step of model.below(2) === 0 ? steps : steps.reverse()) await step(prompt);
          const other = model.prompts[model.below(model.prompts.length)] as number[];
          if (count % 2 === 0) await offServer(other);
          await offDevice(other);
        }
        await relay.passed(sequence - 1);
        await until(() => relay.worker.status().sources[0]?.objects === model.l1.size);
        if (round === 2) {
          // All tiers are forgotten, and what L1 holds comes again.
          model.device.clear();
          await send({ type: 'AllBlocksCleared' });
          await relay.passed(sequence - 1);
        }
        await expectSame(router, relay);
        const prompts = model.prompts.map((tokens) => ({ tokens }));
        const answers = await vi.waitFor(
          async () => {
            const scores = (await router.askScores(prompts)).map(scoreOf);
            expect(scores).toEqual(model.prompts.map((one) => model.score(one)));
            return scores;
          },
          { timeout: 20_000, interval: 200 },
        );
        for (const { device, hostPinned } of answers) {
          if (hostPinned > 0) seen[device > 0 ? 'both' : 'host']++;
        }
      }
      console.log(`prompts found in L1: ${JSON.stringify(seen)}`);
      expect(Math.min(seen.host, seen.both)).toBeGreaterThan(20);
    },
    120_000,
  );
});

function scoreOf({ workers }: OverlapScores): Score {
  const [row] = workers;
  return { device: row?.device_blocks ?? 0, hostPinned: row?.host_pinned_extension_blocks ?? 0 };
}
