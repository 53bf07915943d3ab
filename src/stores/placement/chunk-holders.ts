/**
 * ChunkHolders: who says that a chunk is held, a bit a feed and tier, and where routers see it for that.
 *
 * Blind    feeds do not tell salts. What they say of a hash that is stored under a salt means the salted chunk, and
 *          counts for nothing, as far as anybody has told of the salt.
 */
import type { StorageTier } from '../../protocol/storage-tier.ts';
import type { Chunk, ChunkTier } from './chunk.ts';

/** Bits are 32. */
const MAX_FEEDS = 16;
const MAX_SALTED = 1_000_000;

export class ChunkHolders {
  /** Salted hashes that were forgotten for want of room. */
  forgottenSalts = 0;
  readonly #tiers: Readonly<Record<ChunkTier, StorageTier | null>>;
  /** Whether it is blind, a feed each. */
  readonly #feeds: boolean[] = [];
  /** Hashes that are stored under a salt, oldest first. */
  readonly #salted = new Set<string>();

  constructor(tiers: Readonly<Record<ChunkTier, StorageTier | null>>) {
    this.#tiers = tiers;
  }

  /** The number of one more feed. */
  addFeed(isSaltBlind: boolean): number {
    if (this.#feeds.length === MAX_FEEDS) throw new Error('There are too many sources of chunks');
    return this.#feeds.push(isSaltBlind) - 1;
  }

  storageTierOf(tier: ChunkTier): StorageTier | null {
    return this.#tiers[tier];
  }

  bitOf(feed: number, tier: ChunkTier): number {
    return 1 << (feed * 2 + (tier === 'l1' ? 0 : 1));
  }

  tiersOf({ holders, hashKey, salt }: Chunk): readonly StorageTier[] {
    const found = new Set<StorageTier>();
    const isMasked = salt === '' && this.#salted.has(hashKey);
    for (const [feed, isSaltBlind] of this.#feeds.entries()) {
      if (isSaltBlind && isMasked) continue;
      for (const tier of ['l1', 'l2'] as const) {
        const storageTier = this.#tiers[tier];
        if ((holders & this.bitOf(feed, tier)) !== 0 && storageTier !== null)
          found.add(storageTier);
      }
    }
    return [...found];
  }

  /** Whether the last copy that was told of is under a salt; returns whether that is news. */
  setSalted(hashKey: string, isSalted: boolean): boolean {
    if (!isSalted) return this.#salted.delete(hashKey);
    if (this.#salted.has(hashKey)) return false;
    this.#salted.add(hashKey);
    const [oldest] = this.#salted;
    if (this.#salted.size > MAX_SALTED && oldest !== undefined) {
      this.#salted.delete(oldest);
      this.forgottenSalts++;
    }
    return true;
  }
}
