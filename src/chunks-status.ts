/** LMCache's chunks at the routers, as `/api/status` and the metrics show them. */
import type { ChunkReading } from './metrics/metrics-source.ts';
import type { ChunkPlacementStatus } from './status/status-source.ts';
import type { ChunkTier } from './stores/placement/chunk.ts';
import type { ChunkPlacements } from './stores/placement/chunk-placements.ts';

/** Null where routers are told of no chunk on this tier. */
export function chunkPlacementStatus(
  chunks: ChunkPlacements | null,
  tier: ChunkTier,
): ChunkPlacementStatus | null {
  const storageTier = chunks?.storageTierOf(tier) ?? null;
  if (chunks === null || storageTier === null) return null;
  const { waiting, refused } = chunks;
  return {
    pattern: 'chunks',
    storage_tier: storageTier,
    chunks: chunks.chunks,
    placed_blocks: chunks.placedBlocks,
    unplaced: { unknown_tokens: waiting.tokens, unknown_parent: waiting.parent, ...refused },
  };
}

export function chunkReading(chunks: ChunkPlacements): ChunkReading {
  return {
    chunks: chunks.chunks,
    placedBlocks: chunks.placedBlocks,
    waiting: chunks.waiting,
    refused: chunks.refused,
    forgotten: {
      ...chunks.forgotten,
      names: chunks.ranks.reduce((sum, { names }) => sum + names.forgotten, 0),
    },
  };
}
