/**
 * LmcacheSeries: the counters and histograms of LMCache's bus, each with its series by labels.
 *
 * Bounds   `maxLabelValues` values a label, `MAX_SERIES` series a metric, `MAX_LINES` lines on the metrics page,
 *          which is written in one go; what is beyond goes into the series of the value `kvrelay_overflow` and
 *          is counted by label.
 */
import { Histogram } from './histogram.ts';
import { LMCACHE_COUNTERS, type LmcacheCounter } from './lmcache-families.ts';
import { boundsOf, LMCACHE_HISTOGRAMS, type LmcacheHistogram } from './lmcache-histograms.ts';

export type Labels = Readonly<Record<string, string>>;

export const OVERFLOW_VALUE = 'kvrelay_overflow';
const MAX_SERIES = 5000;
export const MAX_LINES = 30_000;
/** Of a histogram, beside its bounds: the last bucket, sum and count. */
const LINES_BESIDE_BOUNDS = 3;
const MAX_VALUE_CHARACTERS = 200;

export interface CounterSeries {
  readonly labels: Labels;
  value: number;
}
export interface HistogramSeries {
  readonly labels: Labels;
  readonly histogram: Histogram;
}

export class LmcacheSeries {
  readonly counters: ReadonlyMap<LmcacheCounter, Map<string, CounterSeries>>;
  readonly histograms: ReadonlyMap<LmcacheHistogram, Map<string, HistogramSeries>>;
  /** Values that were folded, by label: increments, not values. */
  readonly overflows: Map<string, number> = new Map();
  /** Of series that are made from now on; see `boundsOf`. */
  hasLifecycleBounds = true;
  #lines = 0;
  readonly #values = new Map<string, Set<string>>();
  readonly #maxLabelValues: number;

  constructor(maxLabelValues: number) {
    this.#maxLabelValues = maxLabelValues;
    this.counters = mapsOf(LMCACHE_COUNTERS);
    this.histograms = mapsOf(LMCACHE_HISTOGRAMS);
  }

  /** Adds `value`, which may be 0: that makes the series. Ignores what is no amount. */
  add(name: LmcacheCounter, value: number, labels: Labels = {}): void {
    if (!(value >= 0) || !Number.isFinite(value)) return;
    const series = this.#seriesOf(
      this.counters.get(name),
      labels,
      (bounded) => ({
        labels: bounded,
        value: 0,
      }),
      1,
    );
    series.value += value;
  }

  /** As `add`: LMCache's own histograms take nothing below 0 either, which two clocks can make. */
  observe(name: LmcacheHistogram, value: number, labels: Labels = {}): void {
    if (!(value >= 0) || !Number.isFinite(value)) return;
    const bounds = boundsOf(name, this.hasLifecycleBounds);
    const series = this.#seriesOf(
      this.histograms.get(name),
      labels,
      (bounded) => ({
        labels: bounded,
        histogram: new Histogram(bounds),
      }),
      bounds.length + LINES_BESIDE_BOUNDS,
    );
    series.histogram.observe(value);
  }

  /** The sum over all series of a counter that `filter` takes. */
  total(name: LmcacheCounter, filter: (labels: Labels) => boolean = () => true): number {
    let total = 0;
    for (const { labels, value } of this.counters.get(name)?.values() ?? [])
      if (filter(labels)) total += value;
    return total;
  }

  #seriesOf<Series>(
    all: Map<string, Series> | undefined,
    labels: Labels,
    create: (bounded: Labels) => Series,
    lines: number,
  ): Series {
    const bounded = this.#bounded(labels);
    const key = keyOf(bounded);
    const known = all?.get(key);
    if (known !== undefined) return known;
    const isFull = (all?.size ?? 0) >= MAX_SERIES || this.#lines + lines > MAX_LINES;
    if (isFull && !isOverflow(bounded)) {
      const folded = Object.fromEntries(Object.keys(labels).map((name) => [name, OVERFLOW_VALUE]));
      for (const label of Object.keys(folded)) this.#countOverflow(label);
      return this.#seriesOf(all, folded, create, lines);
    }
    const made = create(bounded);
    all?.set(key, made);
    this.#lines += lines;
    return made;
  }

  #bounded(labels: Labels): Labels {
    let bounded = labels;
    for (const name in labels) {
      const value = labels[name] as string;
      if (this.#admits(name, value)) continue;
      this.#countOverflow(name);
      bounded = { ...bounded, [name]: OVERFLOW_VALUE };
    }
    return bounded;
  }

  #admits(name: string, value: string): boolean {
    if (value === '' || value === OVERFLOW_VALUE) return true;
    let values = this.#values.get(name);
    if (values === undefined) {
      values = new Set();
      this.#values.set(name, values);
    }
    if (values.has(value)) return true;
    if (values.size >= this.#maxLabelValues || value.length > MAX_VALUE_CHARACTERS) return false;
    values.add(value);
    return true;
  }

  #countOverflow(label: string): void {
    this.overflows.set(label, (this.overflows.get(label) ?? 0) + 1);
  }
}

function mapsOf<Name extends string, Series>(
  families: Readonly<Record<Name, unknown>>,
): ReadonlyMap<Name, Map<string, Series>> {
  const names = Object.keys(families) as Name[];
  return new Map(names.map((name) => [name, new Map<string, Series>()]));
}

function isOverflow(labels: Labels): boolean {
  return Object.values(labels).every((value) => value === OVERFLOW_VALUE);
}

/** Callers of one metric give its labels in one order. */
function keyOf(labels: Labels): string {
  let key = '';
  for (const name in labels) key += `${name}\0${labels[name]}\0`;
  return key;
}
