/** Tracked: a map with a bound; what was put in first goes first, and is counted. */
import { LinkedMap } from './linked-map.ts';

export class Tracked<Value> {
  readonly #max: number;
  readonly #onDrop: (dropped: Value, key: string) => void;
  readonly #entries = new LinkedMap<Value>();

  constructor(max: number, onDrop: (dropped: Value, key: string) => void) {
    this.#max = max;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  get oldest(): { readonly key: string; readonly value: Value } | undefined {
    return this.#entries.oldest;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: Value): void {
    this.#entries.set(key, value);
    const { oldest } = this.#entries;
    if (this.#entries.size <= this.#max || oldest === undefined) return;
    this.#entries.take(oldest.key);
    this.#onDrop(oldest.value, oldest.key);
  }

  /** What was there. */
  take(key: string): Value | undefined {
    return this.#entries.take(key);
  }
}
