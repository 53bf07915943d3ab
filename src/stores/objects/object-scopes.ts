/**
 * ObjectScopes: the scopes that were ever named, each with the table of its objects.
 *
 * Bounds   their number; an empty one goes where a new one needs room.
 */
import type { ObjectScope } from './object-change.ts';
import { ObjectTable } from './object-table.ts';

/** A scope with what it holds. */
export interface HeldScope extends ObjectScope {
  /** Rises from scope to scope and is never given again. */
  readonly id: number;
  /** Another one once the scope was cleared. */
  table: ObjectTable;
}

export class ObjectScopes {
  readonly #maxScopes: number;
  /** In the order in which they were first named. */
  readonly #scopes = new Map<string, HeldScope>();
  #last: HeldScope | null = null;
  /** None of them was empty when one was looked for last, and none has been emptied since. */
  #areAllHeld = false;
  #nextId = 1;

  constructor(maxScopes: number) {
    this.#maxScopes = maxScopes;
  }

  all(): Iterable<HeldScope> {
    return this.#scopes.values();
  }

  find(at: ObjectScope): HeldScope | null {
    if (this.#last !== null && areSame(this.#last, at)) return this.#last;
    const scope = this.#scopes.get(nameOf(at)) ?? null;
    if (scope !== null) this.#last = scope;
    return scope;
  }

  /** Null where there are too many, none of them empty. */
  findOrAdd(at: ObjectScope): HeldScope | null {
    const known = this.find(at);
    if (known !== null) return known;
    if (this.#scopes.size >= this.#maxScopes && !this.#dropEmpty()) return null;
    const { source, backendId, tenantId } = at;
    const scope = { id: this.#nextId++, source, backendId, tenantId, table: new ObjectTable() };
    this.#scopes.set(nameOf(at), scope);
    this.#last = scope;
    return scope;
  }

  /** One that held something does not any more. */
  noteEmpty(): void {
    this.#areAllHeld = false;
  }

  #dropEmpty(): boolean {
    if (this.#areAllHeld) return false;
    for (const [name, scope] of this.#scopes) {
      if (scope.table.size > 0) continue;
      this.#scopes.delete(name);
      if (this.#last === scope) this.#last = null;
      return true;
    }
    this.#areAllHeld = true;
    return false;
  }
}

function areSame(one: ObjectScope, other: ObjectScope): boolean {
  return (
    one.tenantId === other.tenantId &&
    one.backendId === other.backendId &&
    one.source === other.source
  );
}

/** Lengths keep names apart whatever they hold. */
function nameOf({ source, backendId, tenantId }: ObjectScope): string {
  return `${source.length} ${source}${backendId.length} ${backendId}${tenantId}`;
}
