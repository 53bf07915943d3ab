/**
 * StorePlacements: which blocks a store holds, by the hashes in the keys of its objects.
 *
 * In       changes of what is held. One block may be several objects (a tensor-parallel rank each, keys and
 *          values apart, a cache group each): it is held while one of them is.
 * Cleared  the hashes of each scope are kept apart, as a clear of many objects must not look into all keys.
 * Never    guesses: a key that the pattern does not match is counted, and nothing is made of it.
 * Out      to each rank, which knows the blocks that its engine has shown.
 */
import type { ParsedKey } from '../../engines/mooncake/key-patterns.ts';
import type { ObjectChange, ObjectScope } from '../objects/object-change.ts';
import { ObjectTable } from '../objects/object-table.ts';
import type { RankPlacements } from './rank-placements.ts';

export interface StorePlacementsOptions {
  readonly source: string;
  /** Name of the preset, or `custom`. */
  readonly patternName: string;
  readonly parse: (objectKey: string) => ParsedKey | null;
  /** u64; null for text that is no such number. */
  readonly hashOf: (parsed: ParsedKey) => bigint | null;
}

export class StorePlacements {
  /** Objects that came and whose keys say which block they hold, or do not. */
  matchedKeys = 0;
  unmatchedKeys = 0;
  ranks: readonly RankPlacements[] = [];
  readonly #options: StorePlacementsOptions;
  /** Objects held, by block hash: 8 bytes little-endian; the count stands in the attributes. */
  #held = new ObjectTable();
  /** The same of each scope that holds some. */
  readonly #scopes = new Map<ObjectScope, ObjectTable>();
  readonly #hash = new Uint8Array(8);
  readonly #words = new DataView(this.#hash.buffer);

  constructor(options: StorePlacementsOptions) {
    this.#options = options;
  }

  get source(): string {
    return this.#options.source;
  }

  get patternName(): string {
    return this.#options.patternName;
  }

  /** Hashes of which an object is held. */
  get heldHashes(): number {
    return this.#held.size;
  }

  /** Blocks that routers are told of, over all ranks. */
  get placedBlocks(): number {
    return this.ranks.reduce((sum, { known }) => sum + known.placedCount, 0);
  }

  isHeld(low: number, high: number): boolean {
    this.#setHash(low, high);
    return this.#held.find(this.#hash) >= 0;
  }

  take(change: ObjectChange): void {
    if (change.scope.source !== this.#options.source) return;
    if (change.type === 'cleared') {
      this.#clear(change.scope);
    } else if (change.type === 'stored') {
      if (change.isNew) this.#add(change.scope, change.key);
    } else if (change.media.length === 0) {
      this.#remove(change.scope, change.key);
    }
  }

  #add(scope: ObjectScope, key: Uint8Array): void {
    if (!this.#read(key)) {
      this.unmatchedKeys++;
      return;
    }
    this.matchedKeys++;
    let table = this.#scopes.get(scope);
    if (table === undefined) {
      table = new ObjectTable();
      this.#scopes.set(scope, table);
    }
    add(table, this.#hash);
    if (add(this.#held, this.#hash) === 1) this.#touch();
  }

  #remove(scope: ObjectScope, key: Uint8Array): void {
    const table = this.#scopes.get(scope);
    if (table === undefined || !this.#read(key)) return;
    take(table, this.#hash, 1);
    if (table.size === 0) this.#scopes.delete(scope);
    if (take(this.#held, this.#hash, 1) === 0) this.#touch();
  }

  #clear(scope: ObjectScope): void {
    const table = this.#scopes.get(scope);
    if (table === undefined) return;
    this.#scopes.delete(scope);
    const isAll = this.#scopes.size === 0;
    if (isAll) this.#held = new ObjectTable();
    for (let entry = 0; entry < table.entryEnd; entry++) {
      const count = table.media(entry) === 0 ? 0 : table.attributes(entry);
      if (count === 0) continue;
      this.#hash.set(table.key(entry));
      if (isAll || take(this.#held, this.#hash, count) === 0) this.#touch();
    }
  }

  #touch(): void {
    const low = this.#words.getInt32(0, true);
    const high = this.#words.getInt32(4, true);
    for (const rank of this.ranks) rank.touch(low, high);
  }

  /** The key's hash to `#hash`; false where it has none. */
  #read(key: Uint8Array): boolean {
    const text = Buffer.from(key.buffer, key.byteOffset, key.length).toString('utf8');
    const parsed = this.#options.parse(text);
    const hash = parsed === null ? null : this.#options.hashOf(parsed);
    if (hash === null) return false;
    this.#words.setBigUint64(0, hash, true);
    return true;
  }

  #setHash(low: number, high: number): void {
    this.#words.setInt32(0, low, true);
    this.#words.setInt32(4, high, true);
  }
}

/** How many objects have the hash with one more. */
function add(table: ObjectTable, hash: Uint8Array): number {
  const entry = table.findOrAdd(hash);
  const count = table.attributes(entry) + 1;
  table.setMedia(entry, 1);
  table.setAttributes(entry, count);
  return count;
}

/** How many have it with `count` less. */
function take(table: ObjectTable, hash: Uint8Array, count: number): number {
  const entry = table.find(hash);
  const left = table.attributes(entry) - count;
  if (left === 0) table.remove(entry);
  else table.setAttributes(entry, left);
  return left;
}
