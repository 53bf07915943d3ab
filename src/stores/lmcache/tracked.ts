/** Tracked: a map with a bound; what was put in first goes first, and is counted. */
export class Tracked<Value> {
  readonly #max: number;
  readonly #onDrop: () => void;
  readonly #entries = new Map<string, Value>();

  constructor(max: number, onDrop: () => void) {
    this.#max = max;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: Value): void {
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#max) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      this.#onDrop();
      return;
    }
  }

  /** What was there. */
  take(key: string): Value | undefined {
    const value = this.#entries.get(key);
    this.#entries.delete(key);
    return value;
  }

  /** From the oldest on. */
  entries(): IterableIterator<[string, Value]> {
    return this.#entries.entries();
  }
}
