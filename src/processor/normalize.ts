/** Operator of the Normalizer: a native batch or a clear in, its events out, nothing for an empty list. */
import { Observable, type OperatorFunction } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { NativeBatch } from '../protocol/native-batch.ts';
import type { PlacementBatch, PlacementEvent } from '../protocol/placement-event.ts';
import { RankCleared } from '../protocol/rank-cleared.ts';
import { Normalizer, type NormalizerOptions } from './normalizer.ts';

/** Called with a remove of blocks of which no copy is left; the operator sets it at subscription. */
export interface LastCopyGone {
  notify: ((removed: PlacementEvent) => void) | null;
}

export function normalize(
  options: NormalizerOptions,
  metrics: RelayMetrics,
  lastCopyGone: LastCopyGone = { notify: null },
): OperatorFunction<NativeBatch | RankCleared, PlacementBatch> {
  return (source) =>
    new Observable((subscriber) => {
      const normalizer = new Normalizer(options, metrics);
      lastCopyGone.notify = (removed) => normalizer.noteLastCopyGone(removed);
      subscriber.add(() => normalizer.free());
      return source.subscribe({
        next(batch) {
          const placements =
            batch instanceof RankCleared ? normalizer.clear(batch) : normalizer.normalize(batch);
          if (placements.length > 0) subscriber.next(placements);
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
}
