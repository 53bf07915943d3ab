/**
 * ObjectState: which objects the stores hold, where, and what is known of them.
 *
 * In       what events and reconciliations say, from any source.
 * Out      each change, and only changes, to the listener, before the call returns.
 * Media    a set for each object: what is said twice counts once, and the object goes with its last one.
 * Cleared  empties one scope and no other.
 * Bounds   objects, key bytes, a key's length, scopes, combinations of attributes. A new object that finds no room is
 *          counted and not held; its removal then changes nothing.
 */
import { AttributeSets, type ObjectAttributes } from './attribute-sets.ts';
import { MediaSets } from './media-sets.ts';
import type { ChangeCause, ObjectChange, ObjectScope } from './object-change.ts';
import { type HeldScope, ObjectScopes } from './object-scopes.ts';
import { MAX_TABLE_KEY_BYTES, ObjectTable } from './object-table.ts';

export interface ObjectStateOptions {
  readonly maxObjects: number;
  readonly maxKeyBytes: number;
  readonly maxScopes: number;
  readonly maxAttributeSets: number;
  /** Must not throw, nor change the state. */
  readonly onChange: (change: ObjectChange) => void;
}

/** What one object is known by. */
export interface HeldObject {
  readonly scope: ObjectScope;
  /** UTF-8; a copy. */
  readonly key: Uint8Array;
  readonly media: readonly string[];
  readonly attributes: ObjectAttributes;
}

export class ObjectState {
  /** New objects for which there was no room. */
  untrackedObjects = 0;
  readonly media: MediaSets = new MediaSets();
  readonly #options: ObjectStateOptions;
  readonly #attributes: AttributeSets;
  readonly #scopes: ObjectScopes;
  #objectCount = 0;
  #keyBytes = 0;

  constructor(options: ObjectStateOptions) {
    this.#options = options;
    this.#attributes = new AttributeSets(options.maxAttributeSets);
    this.#scopes = new ObjectScopes(options.maxScopes);
  }

  get objectCount(): number {
    return this.#objectCount;
  }

  /** Bytes of all tables, what they reserve included. */
  get bytes(): number {
    let bytes = 0;
    for (const { table } of this.#scopes.all()) bytes += table.bytes;
    return bytes;
  }

  /** Objects whose attributes found no room. */
  get unkeptAttributes(): number {
    return this.#attributes.overflows;
  }

  scopes(): Iterable<HeldScope> {
    return this.#scopes.all();
  }

  /** The scope, as long as anything was ever held in it. */
  scope(scope: ObjectScope): HeldScope | null {
    return this.#scopes.find(scope);
  }

  /** Objects of the scopes that are meant. */
  countOf(isMeant: (scope: ObjectScope) => boolean): number {
    let count = 0;
    for (const scope of this.#scopes.all()) {
      if (isMeant(scope)) count += scope.table.size;
    }
    return count;
  }

  /** Returns whether that changed anything. */
  stored(
    at: ObjectScope,
    key: Uint8Array,
    medium: string,
    attributes: ObjectAttributes,
    cause: ChangeCause = 'event',
  ): boolean {
    const bit = this.media.bitOf(medium);
    const scope = bit === 0 ? null : this.#scopes.findOrAdd(at);
    if (scope === null) {
      if (bit !== 0) this.untrackedObjects++;
      return false;
    }
    const { table } = scope;
    const isHeld = table.find(key) >= 0;
    if (!isHeld && !this.#hasRoomFor(key)) return false;
    const entry = table.findOrAdd(key);
    if (!isHeld) this.#count(1, key.length);
    const before = table.media(entry);
    const isNews = this.#setAttributes(table, entry, attributes);
    table.setMedia(entry, before | bit);
    if ((before & bit) !== 0 && !isNews) return false;
    const media = this.media.listOf(before | bit);
    const known = this.#attributes.of(table.attributes(entry));
    const what = { key, medium, media, attributes: known, isNew: !isHeld, cause };
    this.#options.onChange({ type: 'stored', scope, ...what });
    return true;
  }

  removed(at: ObjectScope, key: Uint8Array, medium: string, cause: ChangeCause = 'event'): boolean {
    const scope = this.#scopes.find(at);
    const entry = scope?.table.find(key) ?? -1;
    if (scope === null || entry < 0) return false;
    const bit = this.media.bitOf(medium);
    if ((scope.table.media(entry) & bit) === 0) return false;
    this.#removeMedium(scope, entry, bit, cause);
    return true;
  }

  cleared(at: ObjectScope, cause: ChangeCause = 'event'): boolean {
    const scope = this.#scopes.find(at);
    if (scope === null || scope.table.size === 0) return false;
    const { table } = scope;
    this.#count(-table.size, -table.keyBytes);
    for (let entry = 0; entry < table.entryEnd; entry++) {
      if (table.media(entry) !== 0) this.#attributes.release(table.attributes(entry));
    }
    scope.table = new ObjectTable();
    this.#scopes.noteEmpty();
    const what = { objectCount: table.size, keys: () => table.keys(), cause };
    this.#options.onChange({ type: 'cleared', scope, ...what });
    return true;
  }

  /** Makes the object's media exactly these; none: it is gone. Attributes stay. */
  adopt(at: ObjectScope, key: Uint8Array, media: readonly string[], cause: ChangeCause): boolean {
    const table = this.#scopes.find(at)?.table;
    const entry = table?.find(key) ?? -1;
    const before = entry < 0 ? 0 : (table as ObjectTable).media(entry);
    const number = entry < 0 ? 0 : (table as ObjectTable).attributes(entry);
    const known = this.#attributes.of(number);
    let hasChanged = false;
    let wanted = 0;
    for (const medium of media) {
      wanted |= this.media.bitOf(medium);
      if (this.stored(at, key, medium, known, cause)) hasChanged = true;
    }
    for (let left = before & ~wanted; left !== 0; left &= left - 1) {
      const medium = this.media.nameOf(left & -left);
      if (this.removed(at, key, medium, cause)) hasChanged = true;
    }
    return hasChanged;
  }

  /** The object at an entry of a scope's table; null where it is free. */
  objectAt(scope: HeldScope, entry: number): HeldObject | null {
    const { table } = scope;
    const media = table.media(entry);
    if (media === 0) return null;
    return {
      scope,
      key: table.key(entry).slice(),
      media: this.media.listOf(media),
      attributes: this.#attributes.of(table.attributes(entry)),
    };
  }

  #removeMedium(scope: HeldScope, entry: number, bit: number, cause: ChangeCause): void {
    const { table } = scope;
    const left = table.media(entry) & ~bit;
    const key = table.key(entry);
    const medium = this.media.nameOf(bit);
    if (left === 0) {
      this.#attributes.release(table.attributes(entry));
      table.remove(entry);
      if (table.size === 0) this.#scopes.noteEmpty();
      this.#count(-1, -key.length);
    } else {
      table.setMedia(entry, left);
    }
    this.#options.onChange({
      type: 'removed',
      scope,
      key,
      medium,
      media: this.media.listOf(left),
      cause,
    });
  }

  /** Returns whether they are others than before. */
  #setAttributes(table: ObjectTable, entry: number, attributes: ObjectAttributes): boolean {
    const before = table.attributes(entry);
    const number = this.#attributes.take(attributes);
    table.setAttributes(entry, number);
    this.#attributes.release(before);
    return number !== before;
  }

  #count(objects: number, keyBytes: number): void {
    this.#objectCount += objects;
    this.#keyBytes += keyBytes;
  }

  #hasRoomFor(key: Uint8Array): boolean {
    const { maxObjects, maxKeyBytes } = this.#options;
    const isSpare = this.#objectCount < maxObjects && this.#keyBytes + key.length <= maxKeyBytes;
    if (isSpare && key.length <= MAX_TABLE_KEY_BYTES) return true;
    this.untrackedObjects++;
    return false;
  }
}
