/** What a stock router scores of chunks in L1 of LMCache, told by a real server's event stream or by batches alone. */
import { createHash } from 'node:crypto';
import { blake3 } from '@noble/hashes/blake3';
import { describe, expect, test } from 'vitest';
import { bodyOf, wireBatch } from '../support/cache-batches.ts';
import { freePorts } from '../support/free-ports.ts';
import { hasDynamo } from './dynamo-peers.ts';
import { LmcacheServer, lmcacheServerAvailable, type ServerChunk } from './lmcache-server.ts';
import { type TriedStore, tryScores } from './score-trial.ts';

const CHUNK_TOKENS = 8;

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

async function streamStore(): Promise<TriedStore> {
  const server = await LmcacheServer.start();
  return {
    flags: [`--lmcache-stream=${server.endpoint}`],
    hold: (chunks) => server.store(...chunks.map(chunkOf)),
    drop: (chunk) => server.evict('m', hashOf(chunk)),
  };
}

/** Its coordinator batches, which name no parents. */
async function batchStore(): Promise<TriedStore> {
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
    hold: (chunks) => post('store', chunks),
    drop: (chunk) => post('delete', [chunk]),
  };
}

/** As an engine calls the block that ends these tokens. */
function nameOf(tokens: readonly number[]): bigint {
  return createHash('sha256').update(`engine ${tokens.join()}`).digest().readBigUInt64BE();
}

describe.skipIf(!hasDynamo() || !lmcacheServerAvailable())('a stock router', () => {
  test.each([
    ['the event stream', streamStore],
    ['coordinator batches', batchStore],
  ])(
    'scores prompts in L1 and on the device as they lie there, told by %s',
    async (_, start) => {
      const store = await start();
      const seen = await tryScores({
        store: { ...store, flags: [...store.flags, '--lmcache-model=m'] },
        pieceTokens: CHUNK_TOKENS,
        maxPieces: 4,
        promptsARound: 40,
        needsShown: false,
        nameOf,
        inStore: ({ host_pinned_extension_blocks: blocks }) => blocks,
      });
      console.log(`prompts found in L1: ${JSON.stringify(seen)}`);
      expect(Math.min(seen.alone, seen.behind)).toBeGreaterThan(20);
    },
    120_000,
  );
});
