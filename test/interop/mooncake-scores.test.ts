/** What a stock router scores of blocks in Mooncake Store: the real master, a real client, keys of vLLM's connector. */
import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hasDynamo } from './dynamo-peers.ts';
import { MooncakeClient, MooncakeMaster, mooncakeAvailable } from './mooncake-peers.ts';
import { BLOCK_TOKENS, type TriedStore, tryScores } from './score-trial.ts';

/** The hash that ends these tokens. */
function hashOf(tokens: readonly number[]): Buffer {
  return createHash('sha256').update(tokens.join()).digest();
}

function keyOf(tokens: readonly number[]): string {
  return `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${hashOf(tokens).toString('hex')}`;
}

async function startStore(): Promise<TriedStore> {
  const master = await MooncakeMaster.start();
  onTestFinished(() => master.stop());
  const client = await MooncakeClient.start(master);
  onTestFinished(() => client.stop());
  return {
    flags: [
      `--mooncake-endpoint=${master.endpoint}`,
      `--mooncake-master=${master.adminUrl}`,
      '--mooncake-key-pattern=vllm',
    ],
    hold: async (blocks) => void (await client.ask({ op: 'put', keys: blocks.map(keyOf) })),
    drop: async (block) => void (await client.ask({ op: 'remove', key: keyOf(block) })),
  };
}

describe.skipIf(!hasDynamo() || !mooncakeAvailable())('a stock router', () => {
  test('scores prompts in Mooncake Store and on the device as they lie there', async () => {
    const seen = await tryScores({
      store: await startStore(),
      pieceTokens: BLOCK_TOKENS,
      maxPieces: 6,
      promptsARound: 30,
      needsShown: true,
      // The last 8 bytes count, in the key as in the event.
      nameOf: (tokens) => hashOf(tokens).readBigUInt64BE(24),
      inStore: ({ disk_extension_blocks: blocks }) => blocks,
    });
    console.log(`prompts found in the store: ${JSON.stringify(seen)}`);
    expect(Math.min(seen.alone, seen.behind)).toBeGreaterThan(10);
  }, 120_000);
});
