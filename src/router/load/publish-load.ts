/**
 * When a rank's load is told to routers.
 *
 * In       used blocks of one rank, as they are read; null: unknown.
 * Out      a value once it has stood for DEBOUNCE_MS, then again each HEARTBEAT_MS, so that a router
 *          that starts later knows it too.
 * Never    the same value twice for a repeat of it, and nothing while it is unknown.
 * Source   ai-dynamo/dynamo 1.6.1, WorkerMetricsPublisher; it has no heartbeat.
 */
import {
  asyncScheduler,
  debounceTime,
  distinctUntilChanged,
  EMPTY,
  interval,
  map,
  type OperatorFunction,
  type SchedulerLike,
  startWith,
  switchMap,
} from 'rxjs';

const DEBOUNCE_MS = 1;
const HEARTBEAT_MS = 10_000;

export function publishLoad(
  scheduler: SchedulerLike = asyncScheduler,
): OperatorFunction<number | null, number> {
  return (usedBlocks$) =>
    usedBlocks$.pipe(
      distinctUntilChanged(),
      debounceTime(DEBOUNCE_MS, scheduler),
      switchMap((usedBlocks) => {
        if (usedBlocks === null) return EMPTY;
        return interval(HEARTBEAT_MS, scheduler).pipe(
          startWith(0),
          map(() => usedBlocks),
        );
      }),
    );
}
