/** A chunk of LMCache: some blocks of a sequence that come and go together. */

/** LMCache's tiers: memory of its server, and what lies below. */
export type ChunkTier = 'l1' | 'l2';

/** What tells one chunk from another; the hash is of all tokens up to the chunk's end, salt and model apart. */
export interface ChunkId {
  /** As LMCache's keys have it, 32 bytes with the default algorithm. */
  readonly hash: Uint8Array;
  readonly model: string;
  /** `cache_salt`; empty: none, or not told. */
  readonly salt: string;
}

/** What a chunk holds. */
export interface ChunkTokens {
  readonly hash: Uint8Array;
  /** Of the chunk before; null: it is the first one; undefined: not told. */
  readonly parentHash: Uint8Array | null | undefined;
  /** u32 each; empty: not known. */
  readonly tokenIds: ArrayLike<number>;
  /** Tokens before the chunk; below 0: not told. */
  readonly tokenOffset: number;
}

export interface StoredChunk extends ChunkId, ChunkTokens {
  readonly tier: ChunkTier;
}

export interface RemovedChunk extends ChunkId {
  readonly tier: ChunkTier;
}

/** One that is held, or was a short while ago. */
export interface Chunk {
  readonly key: string;
  readonly hashKey: string;
  readonly salt: string;
  /** Unique among those that are kept. */
  readonly number: number;
  /** A bit a feed and tier. */
  holders: number;
  /** Two signed words a block; null while the tokens are not known. */
  tokensHashes: Int32Array | null;
  /** The same where it is known where the chunk stands, what comes before it included. */
  sequenceHashes: Int32Array | null;
  /** Key of the chunk before; null: it is the first one; undefined: not known. */
  parentKey: string | null | undefined;
  parent: Chunk | null;
  readonly children: Set<Chunk>;
  /** Its tokens end within a block, so that nothing can follow. */
  isPartial: boolean;
  /** It is known why it will not be placed. */
  isRefused: boolean;
}

export function blockCountOf({ tokensHashes }: Chunk): number {
  return tokensHashes === null ? 0 : tokensHashes.length / 2;
}

/** Its tokens are known, and what comes before it. */
export function isWhole({ tokensHashes, parentKey }: Chunk): boolean {
  return tokensHashes !== null && parentKey !== undefined;
}

/** Of one whose tokens are known: whether it is told the same again, as far as it is told. */
export function holdsSame(
  chunk: Chunk,
  tokensHashes: Int32Array,
  parentKey: string | null | undefined,
): boolean {
  const known = chunk.tokensHashes as Int32Array;
  if (known.length !== tokensHashes.length) return false;
  if (chunk.parentKey !== undefined && parentKey !== undefined && chunk.parentKey !== parentKey) {
    return false;
  }
  return known.every((word, index) => word === tokensHashes[index]);
}
