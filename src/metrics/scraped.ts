/**
 * Scraped metrics: prom-client metrics that hold nothing between scrapes. Each scrape starts empty
 * and takes what its reader adds, so a series is there exactly while its field is.
 *
 * Skips    values that are not finite, and negative ones of counters: prom-client would throw
 *          in the scrape, or expose a NaN that poisons every rate computed over it.
 */
import { Counter, Gauge, Histogram as PromHistogram, type Registry } from 'prom-client';
import type { Histogram } from './histogram.ts';

export type LabelSet<Label extends string> = Readonly<Record<Label, string>>;
export type AddSample<Label extends string> = (labels: LabelSet<Label>, value: number) => void;
export type AddHistogram = (labels: LabelSet<'dp_rank'>, histogram: Histogram) => void;

export interface Family<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly Label[];
}

export function scrapedCounter<Label extends string>(
  registry: Registry,
  family: Family<Label>,
  read: (add: AddSample<Label>) => void,
): void {
  new Counter<Label>({
    ...family,
    registers: [registry],
    collect() {
      this.reset();
      // A reset leaves a family without labels at 0, which would hide that it was skipped.
      if (family.labelNames.length === 0) this.remove();
      read((labels, value) => {
        if (Number.isFinite(value) && value >= 0) this.inc(labels, value);
      });
    },
  });
}

export function scrapedGauge<Label extends string>(
  registry: Registry,
  family: Family<Label>,
  read: (add: AddSample<Label>) => void,
): void {
  new Gauge<Label>({
    ...family,
    registers: [registry],
    collect() {
      this.reset();
      if (family.labelNames.length === 0) this.remove();
      read((labels, value) => {
        if (Number.isFinite(value)) this.set(labels, value);
      });
    },
  });
}

interface NamedSample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * A histogram whose buckets are counted elsewhere. prom-client can only observe into its own, so
 * both readers the registry may call on the registered object are replaced.
 */
export function scrapedHistogram(
  registry: Registry,
  family: Family<'dp_rank'>,
  read: (add: AddHistogram) => void,
): void {
  const { name, help } = family;
  const get = async (): Promise<object> => {
    const values: NamedSample[] = [];
    read((labels, histogram) => addBuckets(values, name, labels, histogram));
    return { name, help, type: 'histogram', aggregator: 'sum', values };
  };
  Object.assign(new PromHistogram({ ...family, registers: [registry] }), {
    get,
    getForPromString: get,
  });
}

function addBuckets(
  values: NamedSample[],
  name: string,
  labels: LabelSet<'dp_rank'>,
  histogram: Histogram,
): void {
  let cumulative = 0;
  for (const [bucket, count] of histogram.counts.entries()) {
    cumulative += count;
    const le = String(histogram.bounds[bucket] ?? '+Inf');
    values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: cumulative });
  }
  values.push({ metricName: `${name}_sum`, labels, value: histogram.sum });
  values.push({ metricName: `${name}_count`, labels, value: cumulative });
}
