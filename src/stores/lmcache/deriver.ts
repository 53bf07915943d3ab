/** What the derivations of LMCache's metrics share: their shape, their bounds, and how labels are read. */
import type { BusEvent, EventName, ObjectKey } from '../../engines/lmcache/contracts.ts';
import { type Counts, zeroCounts } from '../../metrics/counts.ts';
import type { Labels, LmcacheSeries } from '../../metrics/lmcache-series.ts';
import type { PairBounds, Pairs } from './pairs.ts';

/** What is done with each type; a type that is not there moves nothing. */
export type Handlers = { readonly [Name in EventName]?: (event: BusEvent<Name>) => void };

export interface DeriverOptions extends PairBounds {
  /** Share of chunks and blocks whose life is followed, above 0 to 1. */
  readonly sampleRate: number;
  /** Chunks or blocks that are followed at a time, in each of the maps. */
  readonly maxTracked: number;
}

export interface DeriverDeps {
  readonly series: LmcacheSeries;
  readonly options: DeriverOptions;
  readonly counts: DeriverCounts;
}

export const UNPAIRED_REASONS = ['timeout', 'evicted', 'end_alone'] as const;
export type UnpairedReason = (typeof UNPAIRED_REASONS)[number];

/** What the bounds have dropped. */
export class DeriverCounts {
  /** Chunks and blocks that are followed no more, as the map was full. */
  untracked = 0;
  /** Every map of starts, to be summed. */
  readonly pairs: Pairs<unknown>[] = [];
  /** Of maps that are gone. */
  readonly #earlier: Counts<UnpairedReason> = zeroCounts(UNPAIRED_REASONS);

  get unpaired(): Counts<UnpairedReason> {
    const sums = { ...this.#earlier };
    for (const { timedOut, evicted, endsAlone } of this.pairs) {
      sums.timeout += timedOut;
      sums.evicted += evicted;
      sums.end_alone += endsAlone;
    }
    return sums;
  }

  forgetPairs(): void {
    Object.assign(this.#earlier, this.unpaired);
    this.pairs.length = 0;
  }
}

/** The labels that are there. */
export function labelsOf(
  values: Readonly<Record<string, string | number | bigint | undefined>>,
): Labels {
  const labels: Record<string, string> = {};
  for (const name in values) {
    const value = values[name];
    if (value !== undefined) labels[name] = String(value);
  }
  return labels;
}

/** An integer as an amount: exact up to 2^53. */
export function amount(value: number | bigint | undefined): number {
  return value === undefined ? 0 : Number(value);
}

export function countBy(
  keys: readonly ObjectKey[],
  field: 'cache_salt' | 'model_name',
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key[field], (counts.get(key[field]) ?? 0) + 1);
  return counts;
}

/** Salts as LMCache labels keys: an empty one adds no label. */
export function withSalt(labels: Labels, salt: string): Labels {
  return salt === '' ? labels : { ...labels, cache_salt: salt };
}

export const NANOGIGA = 1e9;
