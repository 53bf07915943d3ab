/**
 * PrefixCache: what one rank of an engine does with its cache, step by step: prompts are stored block by
 * block, some twice, offloaded, evicted from their end, and now and then all is cleared.
 */
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import { BlockCounts, blockKey, type CacheOp } from './block-counts.ts';
import type { Random } from './random.ts';

const PROMPTS = 6;
const MAX_DEPTH = 5;
const MAX_COPIES = 3;

/** Prompts that begin alike, and with how many blocks. */
const FAMILY = 3;
const SHARED_DEPTH = 2;

/** The same prompts come again after a restart, so that the same hashes do. */
function hashOf(prompt: number, depth: number): bigint {
  const number = BigInt(prompt * MAX_DEPTH + depth + 1);
  return prompt % 2 === 0 ? number : BigInt.asUintN(64, number * 0x9e37_79b9_7f4a_7c15n);
}

export interface CacheHabits {
  readonly clears: boolean;
  readonly lowerTiers: boolean;
  /** Prompts begin alike: one that is evicted whole takes others' first blocks away as well. */
  readonly sharesPrefixes: boolean;
}

export class PrefixCache {
  readonly #random: Random;
  readonly #habits: CacheHabits;
  readonly #counts = new BlockCounts();
  #news = 0;

  constructor(random: Random, habits: CacheHabits) {
    this.#random = random;
    this.#habits = habits;
  }

  /** The events of one batch, few unless told how many. */
  step(count: number = this.#random.between(1, 3)): CacheOp[] {
    return Array.from({ length: count }, () => {
      const op = this.#next();
      this.#counts.apply(0, op);
      return op;
    });
  }

  /** A block that it has never had: whoever hears of it knows that it is up to date. */
  storeNew(): CacheOp {
    const hashes = [hashOf(PROMPTS, this.#news++)];
    const op: CacheOp = { kind: 'store', tier: 'device', parent: null, hashes };
    this.#counts.apply(0, op);
    return op;
  }

  #next(): CacheOp {
    const random = this.#random;
    if (this.#habits.clears && random.chance(0.015)) return { kind: 'clear' };
    const tier = this.#habits.lowerTiers && random.chance(0.3) ? this.#lowerTier() : 'device';
    const prompt = random.below(PROMPTS);
    const held = this.#heldDepth(prompt, tier);
    if (held > 0 && random.chance(0.4)) return this.#evict(prompt, held, tier);
    return this.#store(prompt, held, tier);
  }

  #hashOf(prompt: number, depth: number): bigint {
    const isShared = this.#habits.sharesPrefixes && depth < SHARED_DEPTH;
    return hashOf(isShared ? prompt - (prompt % FAMILY) : prompt, depth);
  }

  #lowerTier(): StorageTier {
    return this.#random.pick(['host_pinned', 'disk'] as const);
  }

  /** A further part of the prompt, or copies of blocks that are held already. */
  #store(prompt: number, held: number, tier: StorageTier): CacheOp {
    const random = this.#random;
    const isCopy = held === MAX_DEPTH || (held > 0 && random.chance(0.2));
    const first = isCopy ? random.below(held) : held;
    const last = random.between(first, Math.min(first + 2, isCopy ? held - 1 : MAX_DEPTH - 1));
    const hashes = [];
    for (let depth = first; depth <= last; depth++) hashes.push(this.#hashOf(prompt, depth));
    const tooMany = hashes.some(
      (hash) => this.#counts.copies(0, blockKey(tier, hash)) >= MAX_COPIES,
    );
    if (tooMany) return { kind: 'remove', tier, hashes };
    return {
      kind: 'store',
      tier,
      parent: first === 0 ? null : this.#hashOf(prompt, first - 1),
      hashes,
    };
  }

  #evict(prompt: number, held: number, tier: StorageTier): CacheOp {
    const first = this.#random.between(Math.max(0, held - 2), held - 1);
    const hashes = [];
    for (let depth = held - 1; depth >= first; depth--) hashes.push(this.#hashOf(prompt, depth));
    return { kind: 'remove', tier, hashes };
  }

  /** Blocks of the prompt that are held, from its start on. */
  #heldDepth(prompt: number, tier: StorageTier): number {
    let depth = 0;
    while (
      depth < MAX_DEPTH &&
      this.#counts.copies(0, blockKey(tier, this.#hashOf(prompt, depth))) > 0
    ) {
      depth++;
    }
    return depth;
  }
}
