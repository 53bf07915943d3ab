/** A cumulative histogram of plain numbers; Prometheus reads the buckets on scrape. */
export class Histogram {
  /** Upper bounds, ascending; a last bucket without bound is implied. */
  readonly bounds: readonly number[];
  /** Observations a bucket, not cumulative; one longer than `bounds`. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  get count(): number {
    return this.counts.reduce((total, count) => total + count, 0);
  }

  /** Ignores what is not finite: one NaN would poison the sum for ever. */
  observe(value: number): void {
    if (!Number.isFinite(value)) return;
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += value;
  }

  /** Upper bound of the bucket that holds quantile `q` (0…1); null without observations. */
  quantile(q: number): number | null {
    const total = this.count;
    if (total === 0) return null;
    let seen = 0;
    for (const [bucket, count] of this.counts.entries()) {
      seen += count;
      if (seen >= q * total) return this.bounds[bucket] ?? (this.bounds.at(-1) as number);
    }
    return this.bounds.at(-1) as number;
  }
}
