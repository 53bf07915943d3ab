/**
 * RecentSums: sums over the last while, in parts of equal length that the events' own times fill.
 *
 * Bounds  `parts` sums; what is older than all of them, or later than the newest by a clock that is behind,
 *         counts with the newest part. Pure.
 */
export class RecentSums {
  readonly #partS: number;
  readonly #sums: number[];
  #newestPart = 0;

  constructor(partS: number, parts: number) {
    this.#partS = partS;
    this.#sums = new Array<number>(parts).fill(0);
  }

  add(at: number, value: number): void {
    this.advance(at);
    const place = this.#newestPart % this.#sums.length;
    this.#sums[place] = (this.#sums[place] as number) + value;
  }

  /** Time goes on without values too. */
  advance(now: number): void {
    const part = Math.floor(now / this.#partS);
    if (part <= this.#newestPart) return;
    const { length } = this.#sums;
    const passed = Math.min(length, part - this.#newestPart);
    for (let back = 0; back < passed; back++) this.#sums[(part - back) % length] = 0;
    this.#newestPart = part;
  }

  /** The clock was set back to `now`: what is there stays, as of the newest part. */
  rewind(now: number): void {
    const part = Math.floor(now / this.#partS);
    if (part >= this.#newestPart) return;
    const sum = this.sum();
    this.#sums.fill(0);
    this.#newestPart = part;
    this.#sums[part % this.#sums.length] = sum;
  }

  /** Of so many parts, the newest of them the one under way or, with `skipped`, one before it. */
  sum(parts: number = this.#sums.length, skipped: number = 0): number {
    const { length } = this.#sums;
    let sum = 0;
    for (let back = skipped; back < Math.min(skipped + parts, length); back++)
      sum += this.#sums[(this.#newestPart + length - back) % length] as number;
    return sum;
  }
}
