/**
 * What a router gets, folded as a router does: sets, no counts.
 *
 * A store adds its blocks to its rank and tier, a removal takes them away, a clear empties all tiers of
 * its rank.
 */
import { unpack } from 'msgpackr';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import { eventsOf, modelEventOf } from '../support/published-events.ts';
import { RouterIndexModel } from '../support/router-index-model.ts';
import type { PublishedMessage } from '../support/scenarios.ts';

export interface PlaneStore {
  readonly eventId: number;
  readonly tier: string;
  readonly parent: bigint | null;
  readonly hashes: readonly bigint[];
  readonly sessionId: string | null;
}

interface RouterEvent {
  readonly worker_id: number | bigint;
  readonly storage_tier: string;
  readonly residency_domain: string;
  readonly event: {
    readonly event_id: number | bigint;
    readonly data: 'cleared' | { stored: StoredData } | { removed: RemovedData };
    readonly dp_rank: number;
  };
  readonly session_id?: string;
}

interface StoredData {
  readonly parent_hash: number | bigint | null;
  readonly blocks: readonly {
    readonly block_hash: number | bigint;
    readonly tokens_hash: number | bigint;
  }[];
}

interface RemovedData {
  readonly block_hashes: readonly (number | bigint)[];
}

export class Plane {
  readonly sequences: readonly number[];
  readonly eventIds: number[] = [];
  readonly ranks: Set<number> = new Set<number>();
  /** Stores of blocks, in order; empty ones are left out. */
  readonly stores: PlaneStore[] = [];
  /** `+ tier hash`, `- tier hash` and `clear`, block by block in order. */
  readonly changes: string[] = [];
  /** Blocks that were stored twice under different tokens hashes. */
  readonly unsteadyTokens: string[] = [];
  readonly #live = new Set<string>();
  readonly #router = new RouterIndexModel();
  readonly #tokensHashes = new Map<string, bigint>();

  constructor(messages: readonly PublishedMessage[]) {
    this.sequences = messages.map(({ sequence }) => sequence);
    for (const { payload } of messages) {
      for (const event of unpack(payload) as RouterEvent[]) this.#take(event);
      for (const event of eventsOf(payload)) this.#router.apply(modelEventOf(event));
    }
  }

  /** Blocks that a router's index holds: of a chain, what hangs below a removed block is gone with it. */
  indexedByTier(): Record<StorageTier, number> {
    const counts = { device: 0, host_pinned: 0, disk: 0, external: 0 };
    for (const [tier] of this.#router.rows()) counts[tier]++;
    return counts;
  }

  /** `tier hash` of each live block, sorted. */
  live(): string[] {
    return [...this.#live].sort();
  }

  #take({ storage_tier: tier, event, session_id }: RouterEvent): void {
    const { data, dp_rank, event_id } = event;
    this.eventIds.push(Number(event_id));
    this.ranks.add(dp_rank);
    if (data === 'cleared') {
      this.changes.push('clear');
      this.#live.clear();
    } else if ('removed' in data) {
      for (const hash of data.removed.block_hashes) this.#remove(`${tier} ${hash}`);
    } else if (data.stored.blocks.length > 0) {
      const { parent_hash: parent, blocks } = data.stored;
      this.stores.push({
        eventId: Number(event_id),
        tier,
        parent: parent === null ? null : BigInt(parent),
        hashes: blocks.map(({ block_hash }) => BigInt(block_hash)),
        sessionId: session_id ?? null,
      });
      for (const block of blocks) this.#add(tier, block.block_hash, block.tokens_hash);
    }
  }

  #remove(key: string): void {
    this.changes.push(`- ${key}`);
    this.#live.delete(key);
  }

  #add(tier: string, blockHash: number | bigint, tokensHash: number | bigint): void {
    const [key, tokens] = [`${tier} ${blockHash}`, BigInt(tokensHash)];
    this.changes.push(`+ ${key}`);
    this.#live.add(key);
    const before = this.#tokensHashes.get(key);
    if (before !== undefined && before !== tokens) this.unsteadyTokens.push(key);
    this.#tokensHashes.set(key, tokens);
  }
}
