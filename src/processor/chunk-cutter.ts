/**
 * ChunkCutter: store chunks on the host tier, as LMCache announces them in the engine's own stream, cut
 * into blocks of the router's size (`safe`).
 *
 * Store    a chunk of k blocks becomes k blocks. The last one has the chunk's own hash, so that the next
 *          chunk finds its parent; the others get hashes made from it.
 * Remove   of a chunk's hash becomes the removal of its blocks.
 * Owns     how many copies of each chunk are held, a kernel table a rank and k; a clear forgets a rank.
 * Bounds   maxChunks held, MAX_FACTORS values of k a rank, and the ranks of RankTables. Beyond them a chunk is not
 *          cut: its blocks could never be removed again.
 */
import { RankTables } from '../kernel/rank-tables.ts';
import { RefcountTable } from '../kernel/tables.ts';
import { U64List } from '../kernel/u64-list.ts';
import { digestAt, type U64Words } from '../kernel/xxh3.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';

const MAX_FACTORS = 8;

/** Seeds the hashes of a chunk's inner blocks, apart from all seeds of routers and engines. */
const CHUNK_SEED: U64Words = { low: 0x6b76_6368, high: 0 };

export class ChunkCutter {
  /** Chunks held, by rank and by blocks a chunk. */
  readonly #tables = new RankTables<number, RefcountTable>(() => new RefcountTable(), MAX_FACTORS);
  readonly #maxChunks: number;
  #chunkCount = 0;

  constructor(maxChunks: number) {
    this.#maxChunks = maxChunks;
  }

  /** Block hashes of `chunkHashes`, `factor` for each; undefined where a bound keeps from it. */
  cut(dpRank: number, chunkHashes: U64List, factor: number): U64List | undefined {
    const table = this.#tables.getOrMake(dpRank, factor);
    if (table === undefined || this.#chunkCount + chunkHashes.length > this.#maxChunks) {
      return undefined;
    }
    const before = table.size;
    if (table.countStored(chunkHashes, this.#maxChunks) > 0) return undefined;
    this.#chunkCount += table.size - before;
    return blocksOf(chunkHashes, factor);
  }

  /** Whether a hash that is removed there may be a chunk's. */
  hasChunks(dpRank: number, tier: StorageTier): boolean {
    return tier === 'host_pinned' && this.#tables.tablesOf(dpRank) !== undefined;
  }

  /** The hashes of a remove with those of chunks replaced by their blocks'. */
  expandRemoved(dpRank: number, tier: StorageTier, blockHashes: U64List): U64List {
    const factors = this.#tables.tablesOf(dpRank);
    if (factors === undefined || tier !== 'host_pinned') return blockHashes;
    const expanded = new U64List(blockHashes.length);
    for (let index = 0; index < blockHashes.length; index++) {
      const hash = blockHashes.slice(index, 1);
      const factor = this.#release(factors, hash);
      expanded.append(factor === null ? hash : blocksOf(hash, factor));
    }
    return expanded;
  }

  forgetRank(dpRank: number): void {
    this.#tables.forgetRank(dpRank, ({ size }) => {
      this.#chunkCount -= size;
    });
  }

  free(): void {
    for (const dpRank of this.#tables.dpRanks) this.forgetRank(dpRank);
  }

  /** Takes one copy of a chunk away; null where the hash is no chunk's. */
  #release(factors: ReadonlyMap<number, RefcountTable>, hash: U64List): number | null {
    for (const [factor, table] of factors) {
      if (!table.has(hash.lowAt(0), hash.highAt(0))) continue;
      const copy = new U64List(1);
      copy.append(hash);
      const before = table.size;
      table.releaseRemoved(copy);
      this.#chunkCount += table.size - before;
      return factor;
    }
    return null;
  }
}

function blocksOf(chunkHashes: U64List, factor: number): U64List {
  const blocks = new U64List(chunkHashes.length * factor);
  const input = new U64List(2);
  for (let chunk = 0; chunk < chunkHashes.length; chunk++) {
    for (let block = 0; block < factor - 1; block++) {
      input.length = 0;
      input.push(chunkHashes.lowAt(chunk), chunkHashes.highAt(chunk));
      input.push(block, 0);
      const { low, high } = digestAt(input.address, 16, CHUNK_SEED);
      blocks.push(low, high);
    }
    blocks.push(chunkHashes.lowAt(chunk), chunkHashes.highAt(chunk));
  }
  return blocks;
}
