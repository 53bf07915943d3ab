/**
 * What MP_TOKENS of LMCache's bus tell of chunks: tokens, and where they stand.
 *
 * Lists    are parallel; before 0.5.4 there are no offsets, before 0.5.6 no parents.
 * Bounds   tokens a chunk; what is no token costs its chunk.
 */
import type { BusEvent } from '../../engines/lmcache/contracts.ts';
import type { ChunkPlacements } from '../placement/chunk-placements.ts';

const MAX_TOKENS = 65_536;

export function learnTokens(event: BusEvent, chunks: Pick<ChunkPlacements, 'learn'>): void {
  if (event.name !== 'MP_TOKENS') return;
  const { chunk_hashes, token_chunks, token_offsets, parent_hashes } = event.metadata;
  for (const [index, hash] of (chunk_hashes ?? []).entries()) {
    const tokenIds = token_chunks?.[index] ?? [];
    if (tokenIds.length > MAX_TOKENS || !areTokens(tokenIds)) continue;
    const tokenOffset = Number(token_offsets?.[index] ?? -1);
    chunks.learn({ hash, parentHash: parent_hashes?.[index], tokenIds, tokenOffset });
  }
}

function areTokens(values: readonly (number | bigint)[]): values is readonly number[] {
  return values.every((value) => typeof value === 'number' && value >= 0 && value < 2 ** 32);
}
