/**
 * Counts holes in the raw event ids: events that were lost between their source and the pipeline.
 *
 * From the engine's socket the ids are given after the filter, so none can be missing; a source that
 * pushes events with ids of its own can lose some.
 * Source  ai-dynamo/dynamo 1.6.1, event_processor.rs. The first id is not judged; a lower one is not
 *         counted and becomes the last.
 */
import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlacementBatch } from '../protocol/placement-event.ts';

export function detectGaps(metrics: RelayMetrics): MonoTypeOperatorFunction<PlacementBatch> {
  return (source) => {
    let lastRawEventId: number | null = null;
    return source.pipe(
      tap((batch) => {
        for (const { rawEventId, eventCount } of batch) {
          if (lastRawEventId !== null && rawEventId > lastRawEventId + 1) {
            metrics.droppedEvents += rawEventId - lastRawEventId - 1;
          }
          lastRawEventId = rawEventId + eventCount - 1;
        }
      }),
    );
  };
}
