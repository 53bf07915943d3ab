import { expect, test } from 'vitest';
import { arena } from '../../src/kernel/arena.ts';
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import { RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { blockLines } from '../../src/status/router-event-json.ts';
import { placementOf } from '../support/held-blocks.ts';

const EVENTS = 20;
const BLOCKS_AN_EVENT = 300;

/** Stores of one chain, as a dump has them. */
function chain(): Uint8Array {
  const encoder = new RouterEventEncoder(42n);
  const buffer = new EncodeBuffer();
  for (let event = 0; event < EVENTS; event++) {
    arena.reset();
    const first = event * BLOCKS_AN_EVENT;
    const blocks = Array.from({ length: BLOCKS_AN_EVENT }, (_, block) => ({
      blockHash: BigInt(first + block + 1),
      tokensHash: BigInt(first + block + 1_000_000),
    }));
    const parent = first === 0 ? null : BigInt(first);
    encoder.encode(
      buffer,
      placementOf({ type: 'stored', tier: 'device', parent, blocks }, 3),
      event,
    );
  }
  const bytes = buffer.bytes(0, buffer.length).slice();
  buffer.free();
  return bytes;
}

test('the lines of a chunk come in texts that take no long to make, every block once and in order', () => {
  const texts = [...blockLines(chain())];
  const lines = texts.map((text) => text.split('\n').slice(0, -1));
  // Whole events: a text ends with the one that fills it.
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(512 + BLOCKS_AN_EVENT);
  expect(lines.length).toBeGreaterThan(EVENTS / 3);
  const blocks = lines.flat().map((line) => JSON.parse(line));
  expect(blocks).toHaveLength(EVENTS * BLOCKS_AN_EVENT);
  for (const [index, block] of blocks.entries()) {
    expect(block).toEqual({
      worker_id: '42',
      dp_rank: 3,
      storage_tier: 'device',
      parent_hash: index === 0 ? null : `${index}`,
      block_hash: `${index + 1}`,
      tokens_hash: `${index + 1_000_000}`,
    });
  }
});
