/**
 * What engines do to a prefix cache, and what it holds then, as a router should see it: a block is held
 * while there are more copies stored than removed, in each tier of each rank.
 */
import type { StorageTier } from '../../src/protocol/storage-tier.ts';

export type CacheOp =
  | {
      readonly kind: 'store';
      readonly tier: StorageTier;
      readonly parent: bigint | null;
      readonly hashes: readonly bigint[];
    }
  | { readonly kind: 'remove'; readonly tier: StorageTier; readonly hashes: readonly bigint[] }
  /** All tiers: a router knows no other clear. */
  | { readonly kind: 'clear' };

/** A tier and a hash: `device/17`. */
export type BlockKey = string;

export function blockKey(tier: string, hash: bigint): BlockKey {
  return `${tier}/${hash}`;
}

export class BlockCounts {
  readonly #ranks = new Map<number, Map<BlockKey, number>>();

  apply(rank: number, op: CacheOp): void {
    if (op.kind === 'clear') {
      this.clear(rank);
      return;
    }
    const blocks = this.#blocksOf(rank);
    for (const hash of op.hashes) {
      const key = blockKey(op.tier, hash);
      const copies = (blocks.get(key) ?? 0) + (op.kind === 'store' ? 1 : -1);
      if (copies > 0) blocks.set(key, copies);
      else blocks.delete(key);
    }
  }

  clear(rank: number): void {
    this.#ranks.delete(rank);
  }

  copies(rank: number, key: BlockKey): number {
    return this.#ranks.get(rank)?.get(key) ?? 0;
  }

  held(rank: number): BlockKey[] {
    return [...this.#blocksOf(rank).keys()].sort();
  }

  #blocksOf(rank: number): Map<BlockKey, number> {
    const known = this.#ranks.get(rank);
    if (known !== undefined) return known;
    const blocks = new Map<BlockKey, number>();
    this.#ranks.set(rank, blocks);
    return blocks;
  }
}
