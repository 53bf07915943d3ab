/**
 * Chunks of LMCache at the routers: what `--lmcache-model` and the tiers make of the configuration, one for
 * all sources of LMCache.
 */
import { merge } from 'rxjs';
import type { WorkerConfig } from './config/worker-config.ts';
import type { PlacementSource } from './pipeline.ts';
import { diverges } from './protocol/compat.ts';
import type { StorageTier } from './protocol/storage-tier.ts';
import { ChunkPlacements } from './stores/placement/chunk-placements.ts';
import { RankChunks } from './stores/placement/rank-chunks.ts';
import type { TurnQueue } from './stores/placement/turn-queue.ts';

/** Null where no chunk is ever placed. `turns`: shared by all that is placed. */
export function createChunkPlacements(
  config: WorkerConfig,
  turns: TurnQueue,
): ChunkPlacements | null {
  const defer = (portion: () => void): void => turns.add(portion);
  const { lmcacheModel, lmcacheL1Tier, lmcacheL2Tier, engine, compat, maxTrackedBlocks } = config;
  const tiers = { l1: tierOf(lmcacheL1Tier), l2: tierOf(lmcacheL2Tier) };
  if (lmcacheModel === null || (tiers.l1 === null && tiers.l2 === null)) return null;
  // `strict` publishes the events of the engine alone.
  if (engine === 'none' || !diverges(compat, 'chunk')) return null;
  const placements = new ChunkPlacements({
    model: lmcacheModel,
    blockSize: config.blockSize,
    tiers,
    maxBlocks: maxTrackedBlocks,
    padTokenIds: [config.imageTokenId, config.videoTokenId].filter((id) => id !== null),
    defer,
  });
  placements.ranks = Array.from(
    { length: config.dpSize },
    (_, offset) =>
      new RankChunks({
        dpRank: config.dpRank + offset,
        maxBlocks: maxTrackedBlocks,
        tellsOfChunks: config.lmcacheStream !== null && tiers.l1 !== null,
        tiersOf: (chunk) => placements.tiersOf(chunk),
        chunkAt: (low, high) => placements.chunkAt(low, high),
        nowMs: () => performance.now(),
        defer,
      }),
  );
  return placements;
}

function tierOf(setting: StorageTier | 'off'): StorageTier | null {
  return setting === 'off' ? null : setting;
}

/** All of them as one; null where there is none. */
export function joinPlacements(
  parts: readonly (PlacementSource | null | undefined)[],
): PlacementSource | null {
  const sources = parts.filter((part) => part !== null && part !== undefined);
  if (sources.length < 2) return sources[0] ?? null;
  return {
    observe: (batch) => {
      for (const source of sources) source.observe(batch);
    },
    tellsOfChunks: sources.some(({ tellsOfChunks }) => tellsOfChunks === true),
    placements$: merge(...sources.map(({ placements$ }) => placements$)),
  };
}
