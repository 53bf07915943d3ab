/** Memory of an index of 1,000,000 blocks, in the shapes that cost most: at most 200 bytes a block. */
import { afterAll, expect, test } from 'vitest';
import { BlockIndex } from '../../src/indexer/block-index.ts';
import { arena } from '../../src/kernel/arena.ts';
import { kernelBytesTaken } from '../../src/kernel/kernel.ts';
import { U64List } from '../../src/kernel/u64-list.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { PlacementEvent } from '../../src/protocol/placement-event.ts';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';

const BLOCKS = 1_000_000;
// The kernel's memory never shrinks: a shape that is given up would hide what the next one takes.
const kept: BlockIndex[] = [];

afterAll(() => {
  for (const index of kept) index.free();
});

/** Spread over all 64 bits, no two equal. */
function pushHash(list: U64List, number: number): void {
  list.push(Math.imul(number, 0x9e37_79b1) >>> 0, Math.imul(number, 0x85eb_ca6b) >>> 0);
}

function storeBlocks(blocks: BlockIndex, tier: StorageTier, from: number, count: number): void {
  arena.reset();
  const hashes = new U64List(count);
  const tokens = new U64List(count);
  for (let number = from; number < from + count; number++) {
    pushHash(hashes, number);
    pushHash(tokens, ~number);
  }
  blocks.apply(new PlacementEvent('stored', 0, tier, hashes, tokens, 0));
}

test.each([
  { shape: 'single roots', tier: 'device', eventBlocks: 1 },
  { shape: 'a lower tier', tier: 'host_pinned', eventBlocks: 64 },
] as const)('$shape', ({ tier, eventBlocks }) => {
  const before = kernelBytesTaken();
  const index = new BlockIndex(BLOCKS, new RelayMetrics());
  kept.push(index);
  for (let from = 1; from <= BLOCKS; from += eventBlocks) {
    storeBlocks(index, tier, from, Math.min(eventBlocks, BLOCKS + 1 - from));
  }
  expect(index.size).toBe(BLOCKS);
  const bytesABlock = (kernelBytesTaken() - before) / BLOCKS;
  expect(bytesABlock).toBeLessThan(200);
  expect(bytesABlock).toBeGreaterThan(16);
});
