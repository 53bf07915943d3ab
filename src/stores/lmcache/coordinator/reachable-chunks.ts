/**
 * ReachableChunks: which chunks the worker can load through its own MP server, told to the routers' placements.
 *
 * Reach    what that server holds itself, and the pools it has named. What other servers hold is theirs.
 * Tiers    a chunk is on a tier while one compartment of it within reach holds it.
 * Tokens   as the store told them, with their place in the sequence. Who the parent is batches do not say: it is
 *          looked for among the chunks that end there.
 * Portions where it is much at once: a pool that comes within reach, and what is given up. Each looks at what is held by
 *          then, so that it makes no difference what came in between.
 */
import type { CacheEntry } from '../../../engines/lmcache/cache-batch.ts';
import type { ChunkId } from '../../placement/chunk.ts';
import type { ChunkFeed } from '../../placement/chunk-feed.ts';
import type { ChunkPlacements } from '../../placement/chunk-placements.ts';
import type { LmcacheTier } from '../object-names.ts';
import type { ChunkName, Compartment, CompartmentWatcher } from './compartment.ts';
import type { Instance } from './instances.ts';
import { ParentSearch } from './parent-search.ts';

/** Chunks that are told in one turn. */
const MAX_PORTION_CHUNKS = 256;

export interface ReachableChunksOptions {
  /** The worker's own MP server. */
  readonly instanceId: string;
  /** The worker's own, as LMCache names it. */
  readonly model: string;
  readonly placements: ChunkPlacements;
}

export class ReachableChunks implements CompartmentWatcher {
  readonly #instanceId: string;
  readonly #model: string;
  readonly #placements: ChunkPlacements;
  readonly #feed: ChunkFeed;
  readonly #parents = new ParentSearch();
  /** Of the worker's own server, and pools that it has named. */
  readonly #within = new Set<Compartment>();
  /** What those of them hold that was not told when they came within reach. */
  readonly #untold = new Map<Compartment, Iterator<ChunkName, void>>();
  #isTelling = false;

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

  /** Not all of it has been told by now. */
  get isBehind(): boolean {
    return this.#feed.isWithdrawing || this.#untold.size > 0;
  }

  /** It has a compartment of its own now, or names a pool; what is held there already is within reach too. */
  noteCompartment({ id, hasLeft }: Instance, compartment: Compartment): void {
    // Of one that has left batches may still come, of pools too.
    if (id !== this.#instanceId || hasLeft || this.#within.has(compartment)) return;
    this.#within.add(compartment);
    if (compartment.chunks === 0) return;
    this.#untold.set(compartment, compartment.chunkNames());
    this.#deferTelling();
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

  noteGone(compartment: Compartment, chunk: ChunkName): void {
    if (!this.#within.has(compartment)) return;
    if (this.#isOwnL1(compartment)) this.#placements.noteSalt(idOf(chunk), false);
    if (!this.#isHeld(chunk, compartment.tier)) {
      this.#feed.removed({ ...idOf(chunk), tier: compartment.tier });
    }
  }

  noteCleared(compartment: Compartment): void {
    if (!this.#within.has(compartment)) return;
    this.#untold.delete(compartment);
    this.#withdraw();
  }

  /** The worker loads nothing through it any more. */
  noteLeft({ id }: Instance): void {
    if (id !== this.#instanceId) return;
    this.#within.clear();
    this.#untold.clear();
    this.#withdraw();
  }

  /** What has not been told by now never is. */
  stop(): void {
    this.#untold.clear();
    this.#feed.stop();
  }

  #deferTelling(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.#feed.defer(() => {
      this.#isTelling = false;
      this.#tellPortion();
      if (this.#untold.size > 0) this.#deferTelling();
    });
  }

  #tellPortion(): void {
    const tokens = { parentHash: undefined, tokenIds: [], tokenOffset: -1 };
    const [first] = this.#untold;
    if (first === undefined) return;
    const [compartment, names] = first;
    for (let told = 0; told < MAX_PORTION_CHUNKS; told++) {
      const { value: chunk, done } = names.next();
      if (done === true) {
        this.#untold.delete(compartment);
        return;
      }
      this.#feed.stored({ ...idOf(chunk), ...tokens, tier: compartment.tier });
    }
  }

  /** Of what was said, all that is not held within reach. */
  #withdraw(): void {
    this.#feed.removedUnless(({ hashKey, salt }, tier) => {
      const hashHex = Buffer.from(hashKey, 'latin1').toString('hex');
      return this.#isHeld({ modelName: this.#model, cacheSalt: salt, hashHex }, tier);
    });
  }

  #isHeld(chunk: ChunkName, tier: LmcacheTier): boolean {
    for (const compartment of this.#within) {
      if (compartment.tier === tier && compartment.holds(chunk)) return true;
    }
    return false;
  }

  #isOwnL1({ instanceId, tier }: Compartment): boolean {
    return instanceId === this.#instanceId && tier === 'l1';
  }
}

function idOf({ cacheSalt, modelName, hashHex }: ChunkName): ChunkId {
  return { hash: Buffer.from(hashHex, 'hex'), model: modelName, salt: cacheSalt };
}
