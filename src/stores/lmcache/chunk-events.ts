/**
 * What LMCache's bus tells of chunks, for those who place them.
 *
 * MP_TOKENS  tokens, and where they stand. Lists are parallel; before 0.5.4 there are no offsets, before 0.5.6 no parents.
 * L1_*       under which salt a hash is written and evicted, which the event stream of the server leaves out.
 * Bounds     tokens a chunk; what is no token costs its chunk.
 */
import type { BusEvent, ObjectKey } from '../../engines/lmcache/contracts.ts';
import type { ChunkId } from '../placement/chunk.ts';
import type { ChunkPlacements } from '../placement/chunk-placements.ts';

const MAX_TOKENS = 65_536;

type Taker = Pick<ChunkPlacements, 'learn' | 'noteSalt'>;

export function takeChunkEvent(event: BusEvent, chunks: Taker): void {
  if (event.name === 'MP_TOKENS') {
    learnTokens(event.metadata, chunks);
  } else if (
    event.name === 'L1_WRITE_FINISHED' ||
    event.name === 'L1_WRITE_FINISHED_AND_READ_RESERVED'
  ) {
    for (const key of event.metadata.keys ?? []) chunks.noteSalt(idOf(key), true);
  } else if (event.name === 'L1_KEYS_EVICTED') {
    for (const key of event.metadata.keys ?? []) chunks.noteSalt(idOf(key), false);
  }
}

function idOf(key: ObjectKey): ChunkId {
  return { hash: key.chunk_hash, model: key.model_name, salt: key.cache_salt };
}

type TokensMetadata = Extract<BusEvent, { name: 'MP_TOKENS' }>['metadata'];

function learnTokens(metadata: TokensMetadata, chunks: Taker): void {
  const { chunk_hashes, token_chunks, token_offsets, parent_hashes } = metadata;
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
