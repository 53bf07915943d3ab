/**
 * ChunkPlacements: chunks of LMCache that are held, as blocks that routers can find.
 *
 * In       what sources of LMCache tell, each through a feed of its own: a chunk is on a tier while one of them says so.
 *          A source counts ranks, groups and backends itself: the first removal ends its say.
 * Makes    something only of chunks of the worker's own model, whose tokens are known, that begin where a block begins, and
 *          whose way from the start of the sequence is known. All others are counted by what they lack.
 * Tokens   may come before the chunk and from somebody else (`learn`); so many are kept until the chunk is stored.
 * Adapters are not in LMCache's keys: a chunk of a request with one cannot be told from one without.
 * Out      to each rank, which knows how its engine names blocks.
 */
import { CHUNK_REFUSALS, type ChunkRefusal } from '../../metrics/chunk-metrics.ts';
import { type Counts, zeroCounts } from '../../metrics/counts.ts';
import type { StorageTier } from '../../protocol/storage-tier.ts';
import {
  type Chunk,
  type ChunkId,
  type ChunkTier,
  type ChunkTokens,
  holdsSame,
  isWhole,
  type StoredChunk,
} from './chunk.ts';
import { ChunkFeed } from './chunk-feed.ts';
import { tokensHashesOf } from './chunk-hashes.ts';
import { ChunkHolders } from './chunk-holders.ts';
import { ChunkTable, type ChunkWait, keyOf } from './chunk-table.ts';
import type { RankChunks } from './rank-chunks.ts';
import { ToldTokens } from './told-tokens.ts';

export interface ChunkPlacementsOptions {
  /** The worker's model as LMCache names it. */
  readonly model: string;
  /** Tokens a block as routers count them. */
  readonly blockSize: number;
  /** In which routers see chunks of a tier; null: not at all. */
  readonly tiers: Readonly<Record<ChunkTier, StorageTier | null>>;
  /** Of all chunks that are known. */
  readonly maxBlocks: number;
  /** Placeholders of images: what stands for them the chunk does not say. */
  readonly padTokenIds: readonly number[];
  /** Calls back once it is the turn of what can wait. */
  readonly defer: (callback: () => void) => void;
}

export class ChunkPlacements {
  readonly refused: Counts<ChunkRefusal> = zeroCounts(CHUNK_REFUSALS);
  ranks: readonly RankChunks[] = [];
  readonly #options: ChunkPlacementsOptions;
  readonly #table: ChunkTable;
  readonly #told = new ToldTokens();
  readonly #holders: ChunkHolders;
  /** Largest chunk that is whole blocks: a smaller one is the end of its sequence. */
  #chunkTokens = 0;

  constructor(options: ChunkPlacementsOptions) {
    this.#options = options;
    this.#holders = new ChunkHolders(options.tiers);
    this.#table = new ChunkTable({
      maxBlocks: options.maxBlocks,
      defer: options.defer,
      onPlace: (chunk) => this.#touch(chunk),
      onMisaligned: () => {
        this.refused.chunk_size++;
      },
      mayDrop: (chunk) => !this.ranks.some((rank) => rank.isPlaced(chunk)),
      onDrop: (chunk) => {
        for (const rank of this.ranks) rank.forget(chunk);
      },
    });
  }

  /** Chunks that are held, by what is not known of them. */
  get waiting(): Readonly<Record<ChunkWait, number>> {
    return this.#table.waiting;
  }

  /** Chunks that are known, held or not. */
  get chunks(): number {
    return this.#table.size;
  }

  /** For want of room: that chunks are salted, tokens told in advance, chunks as parents of others. */
  get forgotten(): Readonly<Record<'salts' | 'tokens' | 'chunks', number>> {
    const salts = this.#holders.forgottenSalts;
    return { salts, tokens: this.#told.forgotten, chunks: this.#table.forgotten };
  }

  /** Blocks that routers are told of, over all ranks and tiers. */
  get placedBlocks(): number {
    return this.ranks.reduce((sum, { placedBlocks }) => sum + placedBlocks, 0);
  }

  storageTierOf(tier: ChunkTier): StorageTier | null {
    return this.#holders.storageTierOf(tier);
  }

  /** One a source; a blind one calls every salt empty, as it does not know any. */
  feed(isSaltBlind = false): ChunkFeed {
    const feed = this.#holders.addFeed(isSaltBlind);
    const [l1, l2] = [this.#holders.bitOf(feed, 'l1'), this.#holders.bitOf(feed, 'l2')];
    return new ChunkFeed(this, { l1, l2 });
  }

  /** Of the worker's own model; null where it is not known. */
  find({ hash, model, salt }: ChunkId): Chunk | null {
    // Chunks of two models that hold the same tokens have one hash.
    return model === this.#options.model ? this.#table.get(keyOf(hashKeyOf(hash), salt)) : null;
  }

  all(): Iterable<Chunk> {
    return this.#table.all();
  }

  /** Calls back once it is the turn of what can wait. */
  defer(callback: () => void): void {
    this.#options.defer(callback);
  }

  chunkAt(sequenceLow: number, sequenceHigh: number): Chunk | null {
    return this.#table.at(sequenceLow, sequenceHigh);
  }

  /** Where blocks of the chunk are to be seen. */
  tiersOf(chunk: Chunk): readonly StorageTier[] {
    return this.#holders.tiersOf(chunk);
  }

  /** Tokens of a chunk that is, or may come to be, stored. */
  learn(tokens: ChunkTokens): void {
    if (tokens.tokenIds.length === 0) return;
    const hashKey = hashKeyOf(tokens.hash);
    this.#told.set(hashKey, tokens);
    for (const chunk of this.#told.waitingFor(hashKey)) this.#teach(chunk, tokens);
  }

  /** A copy is in L1 under this salt, or the one under it is gone. */
  noteSalt({ hash, model, salt }: ChunkId, isWritten: boolean): void {
    if (model !== this.#options.model || (salt === '' && !isWritten)) return;
    const hashKey = hashKeyOf(hash);
    const isSalted = isWritten && salt !== '';
    if (!this.#holders.setSalted(hashKey, isSalted)) return;
    if (isSalted) this.refused.salt++;
    const known = this.#table.get(keyOf(hashKey, ''));
    if (known !== null) this.#touch(known);
  }

  /** Called by feeds; `bit` says who holds it, and on which tier. */
  store(bit: number, chunk: StoredChunk): void {
    if (this.storageTierOf(chunk.tier) === null) return;
    if (chunk.model !== this.#options.model) {
      this.refused.other_model++;
      return;
    }
    const hashKey = hashKeyOf(chunk.hash);
    const known =
      this.#table.get(keyOf(hashKey, chunk.salt)) ?? this.#table.add(hashKey, chunk.salt);
    if (known === null) {
      this.refused.no_room++;
      return;
    }
    this.#table.setHolders(known, known.holders | bit);
    if (chunk.tokenIds.length > 0) this.#teach(known, chunk);
    else if (!isWhole(known) && !known.isRefused) this.#askTold(known, hashKey);
    if (known.sequenceHashes !== null) this.#touch(known);
  }

  /** Called by feeds. */
  release(chunk: Chunk, bit: number): void {
    if ((chunk.holders & bit) === 0) return;
    this.#table.setHolders(chunk, chunk.holders & ~bit);
    if (chunk.holders === 0) this.#told.stopWaiting(chunk.hashKey, chunk);
    this.#touch(chunk);
  }

  #askTold(chunk: Chunk, hashKey: string): void {
    const told = this.#told.get(hashKey);
    if (told === null) this.#waitForRest(chunk);
    else this.#teach(chunk, told);
  }

  #teach(chunk: Chunk, { parentHash, tokenIds, tokenOffset }: ChunkTokens): void {
    const { blockSize } = this.#options;
    if (chunk.isRefused || tokenIds.length === 0) return;
    const refusal = this.#refusalOf(tokenIds, tokenOffset);
    if (refusal !== null) {
      this.#refuse(chunk, refusal);
      return;
    }
    const hashes = tokensHashesOf(tokenIds, blockSize, chunk.salt);
    const parentKey = this.#parentKeyOf(chunk, parentHash, tokenOffset);
    if (chunk.tokensHashes === null) {
      const isPartial = tokenIds.length % blockSize > 0;
      if (!this.#table.setTokens(chunk, hashes, parentKey, isPartial)) {
        this.#refuse(chunk, 'no_room');
      }
    } else if (!holdsSame(chunk, hashes, parentKey)) {
      this.#refuse(chunk, 'conflict');
    } else if (chunk.parentKey === undefined && parentKey !== undefined) {
      this.#table.setParent(chunk, parentKey);
    }
    this.#waitForRest(chunk);
  }

  /** Somebody else may tell what is not known of it. */
  #waitForRest(chunk: Chunk): void {
    if (isWhole(chunk) || chunk.isRefused) this.#told.stopWaiting(chunk.hashKey, chunk);
    else this.#told.wait(chunk.hashKey, chunk);
  }

  #refuse(chunk: Chunk, refusal: ChunkRefusal): void {
    this.refused[refusal]++;
    this.#table.refuse(chunk);
    this.#told.stopWaiting(chunk.hashKey, chunk);
  }

  #refusalOf(tokenIds: ArrayLike<number>, tokenOffset: number): ChunkRefusal | null {
    const { blockSize, padTokenIds } = this.#options;
    const fillsBlocks = tokenIds.length % blockSize === 0;
    if (fillsBlocks) this.#chunkTokens = Math.max(this.#chunkTokens, tokenIds.length);
    const isEnd = tokenIds.length >= blockSize && tokenIds.length < this.#chunkTokens;
    if (!fillsBlocks && !isEnd) return 'chunk_size';
    if (tokenOffset > 0 && tokenOffset % blockSize !== 0) return 'chunk_size';
    for (let index = 0; index < tokenIds.length; index++) {
      if (padTokenIds.includes(tokenIds[index] as number)) return 'images';
    }
    return null;
  }

  #parentKeyOf(
    { salt, hashKey }: Chunk,
    parentHash: Uint8Array | null | undefined,
    tokenOffset: number,
  ): string | null | undefined {
    if (tokenOffset === 0) return null;
    const hash = parentHash === undefined ? this.#told.get(hashKey)?.parentHash : parentHash;
    if (hash === undefined || hash === null) return tokenOffset > 0 ? undefined : hash;
    return keyOf(hashKeyOf(hash), salt);
  }

  #touch(chunk: Chunk): void {
    for (const rank of this.ranks) rank.touch(chunk);
  }
}

function hashKeyOf(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('latin1');
}
