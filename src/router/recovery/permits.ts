/** Permits: a fixed number of things at once; whoever comes later waits its turn. */
export class Permits {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves with what gives the permit back, to be called once. */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return () => {
      const next = this.#waiting.shift();
      // Handed on directly, so that nobody who comes later is first.
      if (next === undefined) this.#free++;
      else next();
    };
  }
}
