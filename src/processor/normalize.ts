/** Operator of the Normalizer: one native batch in, its accepted events out, nothing for an empty list. */
import { Observable, type OperatorFunction } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { NativeBatch } from '../protocol/native-batch.ts';
import type { PlacementBatch, PlacementEvent } from '../protocol/placement-event.ts';
import { Normalizer, type NormalizerOptions } from './normalizer.ts';

/** Called with a remove of blocks of which no copy is left; the operator sets it at subscription. */
export interface LastCopyGone {
  notify: ((removed: PlacementEvent) => void) | null;
}

export function normalize(
  options: NormalizerOptions,
  metrics: RelayMetrics,
  lastCopyGone: LastCopyGone = { notify: null },
): OperatorFunction<NativeBatch, PlacementBatch> {
  return (source) =>
    new Observable((subscriber) => {
      const normalizer = new Normalizer(options, metrics);
      lastCopyGone.notify = (removed) => normalizer.noteLastCopyGone(removed);
      subscriber.add(() => normalizer.free());
      return source.subscribe({
        next(batch) {
          const placements = normalizer.normalize(batch);
          if (placements.length > 0) subscriber.next(placements);
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
}
