/**
 * Heartbeats: where a rank has fallen quiet, an empty `removed` goes out under an id of its own. A router that
 * lost the last message of a burst sees a hole before it, and asks for what it missed.
 *
 * In/out   batches, before they are numbered; each passes as it is.
 * Beats    at BEATS_AFTER_MS of quiet, which counts from the last batch or from `resumed$`, whichever came
 *          later. A heartbeat begins no new row, so that a quiet rank soon says nothing more.
 * Skips    a beat that is due while `mayBeat()` is false.
 * Source   ai-dynamo/dynamo 1.6.1, whose routers notice a hole by the next event alone.
 */
import {
  asyncScheduler,
  type MonoTypeOperatorFunction,
  Observable,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';
import { U64List } from '../kernel/u64-list.ts';
import { type PlacementBatch, PlacementEvent } from '../protocol/placement-event.ts';

const BEATS_AFTER_MS = [500, 2000, 10_000] as const;

export interface HeartbeatOptions {
  readonly dpRank: number;
  /** Whether routers follow now, and could ask for what they missed. */
  readonly mayBeat: () => boolean;
  /** What had waited for the plane leaves only now, and may be lost as well. */
  readonly resumed$: Observable<void>;
  // Replaced where a test turns the clock itself.
  /** Runs the beats; its clock is not read, as the wall clock may be set back. */
  readonly scheduler?: SchedulerLike;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

export function insertHeartbeats(
  options: HeartbeatOptions,
): MonoTypeOperatorFunction<PlacementBatch> {
  const { dpRank, mayBeat, resumed$, scheduler = asyncScheduler } = options;
  const nowMs = options.nowMs ?? ((): number => performance.now());
  return (source) =>
    new Observable((subscriber) => {
      /** Null before the first batch. */
      let quietSinceMs: number | null = null;
      let beats = 0;
      let timer: Subscription | undefined;

      const schedule = (): void => {
        timer?.unsubscribe();
        timer = undefined;
        const afterMs = BEATS_AFTER_MS[beats];
        if (afterMs === undefined || quietSinceMs === null) return;
        // Whole milliseconds, as timers have: a rest below that would never pass.
        timer = scheduler.schedule(onTime, Math.ceil(quietSinceMs + afterMs - nowMs()));
      };
      const onTime = (): void => {
        const afterMs = BEATS_AFTER_MS[beats] ?? 0;
        // Batches that came meanwhile have not moved the timer: it waits out the rest.
        if (quietSinceMs !== null && nowMs() - quietSinceMs >= afterMs) {
          beats++;
          if (mayBeat()) subscriber.next([heartbeat(dpRank)]);
        }
        schedule();
      };
      const beginRow = (): void => {
        quietSinceMs = nowMs();
        if (timer !== undefined && beats === 0) return;
        beats = 0;
        schedule();
      };

      subscriber.add(() => timer?.unsubscribe());
      subscriber.add(
        resumed$.subscribe(() => {
          if (quietSinceMs !== null) beginRow();
        }),
      );
      subscriber.add(
        source.subscribe({
          next(batch) {
            beginRow();
            subscriber.next(batch);
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => subscriber.complete(),
        }),
      );
    });
}

function heartbeat(dpRank: number): PlacementEvent {
  return new PlacementEvent('removed', dpRank, 'device', new U64List(0), null, performance.now());
}
