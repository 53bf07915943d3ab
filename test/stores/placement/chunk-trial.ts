/** Chunks of LMCache, ranks, and what a router makes of the events. */

import { promptHashes } from '../../../src/hashing/prompt-hashes.ts';
import { BlockIndex, type RankMatch } from '../../../src/indexer/block-index.ts';
import { arena } from '../../../src/kernel/arena.ts';
import { U64List } from '../../../src/kernel/u64-list.ts';
import { RelayMetrics } from '../../../src/metrics/relay-metrics.ts';
import { PlacementEvent } from '../../../src/protocol/placement-event.ts';
import {
  ChunkPlacements,
  type ChunkPlacementsOptions,
} from '../../../src/stores/placement/chunk-placements.ts';
import { RankChunks } from '../../../src/stores/placement/rank-chunks.ts';
import { shown } from '../../support/placements.ts';

export const BLOCK_SIZE = 2;

export class ChunkTrial {
  readonly placements: ChunkPlacements;
  readonly index: BlockIndex = new BlockIndex(100_000, new RelayMetrics());
  /** Of the store, as text. */
  readonly events: string[] = [];
  #deferred: (() => void)[] = [];

  constructor(options: Partial<ChunkPlacementsOptions> = {}, ranks: number = 1) {
    this.placements = new ChunkPlacements({
      model: 'm',
      blockSize: BLOCK_SIZE,
      tiers: { l1: 'host_pinned', l2: 'disk' },
      maxBlocks: 10_000,
      padTokenIds: [],
      defer: (callback) => this.#deferred.push(callback),
      ...options,
    });
    this.placements.ranks = Array.from({ length: ranks }, (_, dpRank) => {
      const rank = new RankChunks({
        dpRank,
        maxBlocks: options.maxBlocks ?? 10_000,
        tellsOfChunks: true,
        tiersOf: (chunk) => this.placements.tiersOf(chunk),
        chunkAt: (low, high) => this.placements.chunkAt(low, high),
        nowMs: () => 0,
        defer: (callback) => this.#deferred.push(callback),
      });
      rank.placements$.subscribe((batch) => {
        for (const event of batch) {
          this.events.push(shown(event));
          this.index.apply(event);
        }
      });
      return rank;
    });
  }

  turn(): void {
    while (this.#deferred.length > 0) for (const callback of this.#deferred.splice(0)) callback();
  }

  get hasPortions(): boolean {
    return this.#deferred.length > 0;
  }

  /** What is put off first, and nothing else. */
  portion(): void {
    this.#deferred.shift()?.();
  }

  /** The engine of a rank stores blocks on the device tier. */
  engineStores(
    parent: bigint | null,
    hashes: readonly bigint[],
    tokens: readonly number[],
    dpRank = 0,
  ): void {
    arena.reset();
    const tokensHashes = hashesOf(tokens);
    const event = new PlacementEvent(
      'stored',
      dpRank,
      'device',
      U64List.of(...hashes),
      tokensHashes,
      0,
    );
    event.hasParent = parent !== null;
    event.parentLow = Number(BigInt.asIntN(32, parent ?? 0n));
    event.parentHigh = Number(BigInt.asIntN(32, (parent ?? 0n) >> 32n));
    this.#pass(event);
  }

  engineRemoves(hashes: readonly bigint[], dpRank = 0): void {
    arena.reset();
    this.#pass(new PlacementEvent('removed', dpRank, 'device', U64List.of(...hashes), null, 0));
  }

  clears(dpRank = 0): void {
    arena.reset();
    this.#pass(new PlacementEvent('cleared', dpRank, 'device', new U64List(0), null, 0));
  }

  match(
    tokens: readonly number[],
    cacheSalt: string | null = null,
    dpRank = 0,
  ): RankMatch['blocks'] {
    arena.reset();
    const match = this.index
      .match(hashesOf(tokens, cacheSalt))
      .find((one) => one.dpRank === dpRank);
    return match?.blocks ?? { device: 0, host_pinned: 0, disk: 0, external: 0 };
  }

  #pass(event: PlacementEvent): void {
    this.placements.ranks[event.dpRank]?.observe([event]);
    this.index.apply(event);
  }
}

export function hashesOf(tokens: readonly number[], cacheSalt: string | null = null): U64List {
  const prompt = { tokens, loraName: null, cacheSalt, mmHashes: [], isEagle: false };
  return promptHashes(prompt, BLOCK_SIZE, { imageTokenId: null, videoTokenId: null });
}

/** Chunks are named by the tokens up to their end. */
export function hashOf(tokens: readonly number[]): Uint8Array {
  return Buffer.from(`chunk ${tokens.join()}`);
}

/** The chunk of `size` tokens at the end of these. */
export function chunkAt(
  tokens: readonly number[],
  size: number,
  more: { salt?: string; model?: string; tier?: 'l1' | 'l2' } = {},
): {
  hash: Uint8Array;
  parentHash: Uint8Array | null;
  tokenIds: readonly number[];
  tokenOffset: number;
  salt: string;
  model: string;
  tier: 'l1' | 'l2';
} {
  const before = tokens.slice(0, tokens.length - size);
  return {
    hash: hashOf(tokens),
    parentHash: before.length === 0 ? null : hashOf(before),
    tokenIds: tokens.slice(-size),
    tokenOffset: -1,
    salt: '',
    model: 'm',
    tier: 'l1',
    ...more,
  };
}
