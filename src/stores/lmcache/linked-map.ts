/**
 * LinkedMap: a map that knows its oldest entry at once. A plain one finds it by stepping over everything that
 * has been deleted before it, which at a full bound is a pass over the whole map for each new entry.
 *
 * Order  of first putting in; a key that is put in again keeps its place, unless it was taken before.
 */
interface Entry<Value> {
  readonly key: string;
  value: Value;
  before: Entry<Value> | undefined;
  after: Entry<Value> | undefined;
}

export class LinkedMap<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  #oldest: Entry<Value> | undefined;
  #newest: Entry<Value> | undefined;

  get size(): number {
    return this.#entries.size;
  }

  get oldest(): { readonly key: string; readonly value: Value } | undefined {
    return this.#oldest;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  set(key: string, value: Value): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.value = value;
      return;
    }
    const entry = { key, value, before: this.#newest, after: undefined };
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.after = entry;
    this.#newest = entry;
    this.#entries.set(key, entry);
  }

  /** What was there. */
  take(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.before === undefined) this.#oldest = entry.after;
    else entry.before.after = entry.after;
    if (entry.after === undefined) this.#newest = entry.before;
    else entry.after.before = entry.before;
    return entry.value;
  }

  *values(): IterableIterator<Value> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.after) yield entry.value;
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = undefined;
    this.#newest = undefined;
  }
}
