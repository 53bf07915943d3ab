/** Random numbers of a seed: the same seed, the same history, on every machine. */
export class Random {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    this.#state = this.#seed;
  }

  /** One with numbers of its own: whoever draws from it moves nobody else's. */
  fork(name: string): Random {
    let seed = Math.imul(this.#seed ^ 0x9e37_79b9, 0x85eb_ca6b);
    for (const character of name) {
      seed = Math.imul(seed ^ character.charCodeAt(0), 0x0100_0193) ^ (seed >>> 15);
    }
    return new Random(seed);
  }

  /** From 0 up to, but without, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from 0 up to, but without, `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick<Choice>(choices: readonly Choice[]): Choice {
    return choices[Math.floor(this.next() * choices.length)] as Choice;
  }
}
