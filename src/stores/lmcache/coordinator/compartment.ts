/**
 * Compartment: what one MP server, or a pool that several mount, holds in one tier and backend.
 *
 * Holders  a chunk is held by ranks and object groups, each of them once, with its bytes; the object comes
 *          with the first of them and goes with the last.
 * Out      the state's objects; `holders` and `bytes` for whoever shows them.
 * Bounds   holders of all compartments together and the bytes of their names, by the account that is shared; of one
 *          compartment's what a table can tell the place of. What comes beyond is counted and not held.
 */
import type { CacheEntry } from '../../../engines/lmcache/cache-batch.ts';
import { NO_ATTRIBUTES, type ObjectAttributes } from '../../objects/attribute-sets.ts';
import type { ChangeCause, ObjectScope } from '../../objects/object-change.ts';
import type { ObjectState } from '../../objects/object-state.ts';
import { ObjectTable } from '../../objects/object-table.ts';
import { backendOf, LMCACHE, type LmcacheTier, mediumOf, tenantOf } from '../object-names.ts';

/** What tells one chunk from another. */
export type ChunkName = Pick<CacheEntry, 'cacheSalt' | 'modelName' | 'hashHex'>;

/** Shared by all compartments. */
export interface HolderAccount {
  readonly maxHolders: number;
  readonly maxKeyBytes: number;
  holders: number;
  /** Of their names: rank, group, salt, model, hash. */
  keyBytes: number;
  /** Those that found no room. */
  untracked: number;
}

export interface CompartmentWatcher {
  /** A chunk's last holder there is gone. */
  noteGone(compartment: Compartment, chunk: ChunkName): void;
  /** All that was held there was given up. */
  noteCleared(compartment: Compartment): void;
}

export interface CompartmentOptions {
  /** Null: a pool that several servers mount. */
  readonly instanceId: string | null;
  readonly tier: LmcacheTier;
  readonly backend: string;
  readonly state: ObjectState;
  readonly account: HolderAccount;
  /** Null: nobody asks. */
  readonly watcher: CompartmentWatcher | null;
}

const U32 = 0x1_0000_0000;
const MAX_TABLE_BYTES = 2 ** 31;

export class Compartment {
  readonly tier: LmcacheTier;
  readonly backend: string;
  readonly medium: string;
  readonly instanceId: string | null;
  /** Declared, and not 0; null while it is not known. */
  capacityBytes: number | null = null;
  /** Of all holders. */
  bytes = 0;

  readonly #backendId: string;
  readonly #state: ObjectState;
  readonly #account: HolderAccount;
  readonly #watcher: CompartmentWatcher | null;
  /** Low half of the bytes as attributes, high half as media, so that an entry has one of them set. */
  #holders = new ObjectTable();
  /** Holders of a chunk as attributes. */
  #chunks = new ObjectTable();
  /** With how many chunks each: the state has thousands of scopes, most of others. */
  readonly #tenants = new Map<string, number>();

  constructor({ instanceId, tier, backend, state, account, watcher }: CompartmentOptions) {
    this.#watcher = watcher;
    this.instanceId = instanceId;
    this.tier = tier;
    this.backend = backend;
    this.medium = mediumOf(tier, backend);
    this.#backendId = backendOf(instanceId, this.medium);
    this.#state = state;
    this.#account = account;
  }

  holds(chunk: ChunkName): boolean {
    return this.#chunks.find(chunkKeyOf(chunk)) >= 0;
  }

  /** May be taken up again later: what is stored meanwhile may be left out. */
  *chunkNames(): Generator<ChunkName> {
    for (const key of this.#chunks.keys()) {
      const [cacheSalt = '', modelName = '', hashHex = ''] = Buffer.from(key).toString().split('@');
      yield { cacheSalt, modelName, hashHex };
    }
  }

  get holders(): number {
    return this.#holders.size;
  }

  get chunks(): number {
    return this.#chunks.size;
  }

  /** Returns whether that changed what is held. */
  store(entry: CacheEntry): boolean {
    const { modelName, hashHex, sizeBytes } = entry;
    const holder = holderKeyOf(entry);
    const known = this.#holders.find(holder);
    if (known < 0) {
      if (!this.#hasRoomFor(holder)) {
        this.#account.untracked++;
        return false;
      }
      this.#account.holders++;
      this.#account.keyBytes += holder.length;
      this.#addChunk(entry);
    } else {
      this.bytes -= this.#sizeAt(known);
    }
    const at = this.#holders.findOrAdd(holder);
    this.#holders.setAttributes(at, sizeBytes % U32);
    this.#holders.setMedia(at, 1 | (Math.floor(sizeBytes / U32) << 1));
    this.bytes += sizeBytes;
    const attributes: ObjectAttributes = { ...NO_ATTRIBUTES, modelName };
    const key = Buffer.from(hashHex);
    const hasChanged = this.#state.stored(this.#scopeOf(entry), key, this.medium, attributes);
    return hasChanged || known < 0;
  }

  /** Returns whether that changed what is held. */
  delete(entry: CacheEntry): boolean {
    const holder = holderKeyOf(entry);
    const at = this.#holders.find(holder);
    if (at < 0) return false;
    this.bytes -= this.#sizeAt(at);
    this.#holders.remove(at);
    this.#account.holders--;
    this.#account.keyBytes -= holder.length;
    if (!this.#dropChunk(entry)) return true;
    this.#state.removed(this.#scopeOf(entry), Buffer.from(entry.hashHex), this.medium);
    this.#watcher?.noteGone(this, entry);
    return true;
  }

  /** Gives up all it holds. A server's own compartments have their scopes in common and go together. */
  clear(cause: ChangeCause): void {
    if (this.#holders.size === 0) return;
    for (const tenantId of this.#tenants.keys()) {
      this.#state.cleared({ source: LMCACHE, backendId: this.#backendId, tenantId }, cause);
    }
    this.#tenants.clear();
    this.#account.holders -= this.#holders.size;
    this.#account.keyBytes -= this.#holders.keyBytes;
    this.#holders = new ObjectTable();
    this.#chunks = new ObjectTable();
    this.bytes = 0;
    this.#watcher?.noteCleared(this);
  }

  #hasRoomFor({ length }: Uint8Array): boolean {
    const { holders, maxHolders, keyBytes, maxKeyBytes } = this.#account;
    if (this.#holders.keyBytes + length > MAX_TABLE_BYTES) return false;
    return holders < maxHolders && keyBytes + length <= maxKeyBytes;
  }

  #scopeOf({ modelName, cacheSalt }: CacheEntry): ObjectScope {
    const tenantId = tenantOf(modelName, cacheSalt);
    return { source: LMCACHE, backendId: this.#backendId, tenantId };
  }

  #sizeAt(entry: number): number {
    return (this.#holders.media(entry) >>> 1) * U32 + this.#holders.attributes(entry);
  }

  #addChunk(chunk: ChunkName): void {
    const at = this.#chunks.findOrAdd(chunkKeyOf(chunk));
    const holders = this.#chunks.attributes(at);
    if (holders === 0) this.#countTenant(chunk, 1);
    this.#chunks.setMedia(at, 1);
    this.#chunks.setAttributes(at, holders + 1);
  }

  /** Returns whether that was its last holder. */
  #dropChunk(chunk: ChunkName): boolean {
    const at = this.#chunks.find(chunkKeyOf(chunk));
    const left = this.#chunks.attributes(at) - 1;
    this.#chunks.setAttributes(at, left);
    if (left > 0) return false;
    this.#chunks.remove(at);
    this.#countTenant(chunk, -1);
    return true;
  }

  #countTenant({ modelName, cacheSalt }: ChunkName, chunks: 1 | -1): void {
    const tenantId = tenantOf(modelName, cacheSalt);
    const count = (this.#tenants.get(tenantId) ?? 0) + chunks;
    if (count === 0) this.#tenants.delete(tenantId);
    else this.#tenants.set(tenantId, count);
  }
}

/** A salt and a model's name hold no `@`. */
function chunkKeyOf({ cacheSalt, modelName, hashHex }: ChunkName): Buffer {
  return Buffer.from(`${cacheSalt}@${modelName}@${hashHex}`);
}

function holderKeyOf({ kvRank, objectGroupId, cacheSalt, modelName, hashHex }: CacheEntry): Buffer {
  return Buffer.from(`${kvRank}/${objectGroupId}@${cacheSalt}@${modelName}@${hashHex}`);
}
