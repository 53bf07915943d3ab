/**
 * ReachableChunks: which chunks the worker can load through its own MP server, told to the routers' placements.
 *
 * Reach    what that server holds itself, and the pools it has named. What other servers hold is theirs.
 * Tiers    a chunk is on a tier while one compartment of it within reach holds it.
 * Tokens   as the store told them, with their place in the sequence. Who the parent is batches do not say: it is
 *          looked for among the chunks that end there.
 */
import type { CacheEntry } from '../../../engines/lmcache/cache-batch.ts';
import type { ChunkId } from '../../placement/chunk.ts';
import type { ChunkFeed } from '../../placement/chunk-feed.ts';
import type { ChunkPlacements } from '../../placement/chunk-placements.ts';
import type { ChunkName, Compartment } from './compartment.ts';
import type { Instance } from './instances.ts';
import { ParentSearch } from './parent-search.ts';

export interface ReachableChunksOptions {
  /** The worker's own MP server. */
  readonly instanceId: string;
  /** The worker's own, as LMCache names it. */
  readonly model: string;
  readonly placements: ChunkPlacements;
}

export class ReachableChunks {
  readonly #instanceId: string;
  readonly #model: string;
  readonly #placements: ChunkPlacements;
  readonly #feed: ChunkFeed;
  readonly #parents = new ParentSearch();
  /** Of the worker's own server, and pools that it has named. */
  readonly #within = new Set<Compartment>();

  constructor({ instanceId, model, placements }: ReachableChunksOptions) {
    this.#instanceId = instanceId;
    this.#model = model;
    this.#placements = placements;
    this.#feed = placements.feed();
  }

  /** Before the batches that came in one request. */
  beginPost(): void {
    this.#parents.beginPost();
  }

  /** It has a compartment of its own now, or names a pool; what is held there already is within reach too. */
  noteCompartment({ id, hasLeft }: Instance, compartment: Compartment): void {
    // Of one that has left batches may still come, of pools too.
    if (id !== this.#instanceId || hasLeft || this.#within.has(compartment)) return;
    this.#within.add(compartment);
    for (const chunk of compartment.chunkNames()) {
      const tokens = { parentHash: undefined, tokenIds: [], tokenOffset: -1 };
      this.#feed.stored({ ...idOf(chunk), ...tokens, tier: compartment.tier });
    }
  }

  /** Each store, also of a chunk that is held: it may be the first one that tells the tokens. */
  noteStored(compartment: Compartment, entry: CacheEntry): void {
    const { modelName: model, cacheSalt: salt, tokenIds, tokenOffset } = entry;
    const parentHash = model === this.#model ? this.#parents.parentOf(entry) : undefined;
    const tokens = {
      hash: Buffer.from(entry.hashHex, 'hex'),
      parentHash,
      tokenIds,
      tokenOffset,
    };
    if (this.#within.has(compartment)) {
      // The event stream of the same server does not tell it.
      if (this.#isOwnL1(compartment)) this.#placements.noteSalt(idOf(entry), true);
      this.#feed.stored({ ...tokens, model, salt, tier: compartment.tier });
    } else if (compartment.instanceId === null && tokenIds.length > 0) {
      this.#placements.learn(tokens);
    }
  }

  /** `chunk` is held there no more, or nobody can say so any more (`isTold` false). */
  noteGone(compartment: Compartment, chunk: ChunkName, isTold: boolean): void {
    if (!this.#within.has(compartment)) return;
    if (isTold && this.#isOwnL1(compartment)) this.#placements.noteSalt(idOf(chunk), false);
    for (const other of this.#within) {
      if (other !== compartment && other.tier === compartment.tier && other.holds(chunk)) return;
    }
    this.#feed.removed({ ...idOf(chunk), tier: compartment.tier });
  }

  /** The worker loads nothing through it any more. */
  noteLeft({ id }: Instance): void {
    if (id !== this.#instanceId) return;
    this.#within.clear();
    this.#feed.removedAll();
  }

  #isOwnL1({ instanceId, tier }: Compartment): boolean {
    return instanceId === this.#instanceId && tier === 'l1';
  }
}

function idOf({ cacheSalt, modelName, hashHex }: ChunkName): ChunkId {
  return { hash: Buffer.from(hashHex, 'hex'), model: modelName, salt: cacheSalt };
}
