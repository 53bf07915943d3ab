/**
 * Operator of the Coalescer, with its deadline.
 *
 * Flush    at the end of a native batch where timeoutMs have passed since the last flush of any kind,
 *          else when they have; with timeoutMs 0 at the end of each batch. The deadline is not armed by
 *          the pending event, so nothing waits longer than timeoutMs, and after a pause nothing waits.
 * Source   ai-dynamo/dynamo 1.6.1, event_processor.rs.
 */
import {
  asyncScheduler,
  type MonoTypeOperatorFunction,
  Observable,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { PlacementBatch } from '../protocol/placement-event.ts';
import { Coalescer, type CoalescerOptions } from './coalescer.ts';

export interface CoalesceOptions extends CoalescerOptions {
  readonly timeoutMs: number;
  /** Runs the deadline; its clock is not read, as the wall clock may be set back. */
  readonly scheduler?: SchedulerLike;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

export function coalesce(
  options: CoalesceOptions,
  metrics: RelayMetrics,
): MonoTypeOperatorFunction<PlacementBatch> {
  const { timeoutMs, scheduler = asyncScheduler } = options;
  const nowMs = options.nowMs ?? ((): number => performance.now());
  return (source) =>
    new Observable((subscriber) => {
      const coalescer = new Coalescer(options, metrics);
      let lastFlushMs = nowMs();
      let deadline: Subscription | undefined;

      /** How long what is pending may wait on; 0 where it is due. */
      const remainingMs = (hasFlushed: boolean): number => {
        if (timeoutMs === 0) return 0;
        const now = nowMs();
        if (hasFlushed) lastFlushMs = now;
        return Math.max(lastFlushMs + timeoutMs - now, 0);
      };
      const release = (out: PlacementBatch, isEnd: boolean): void => {
        const waitMs = isEnd ? 0 : remainingMs(out.length > 0);
        if (waitMs === 0) {
          coalescer.flush(out);
          if (timeoutMs > 0) lastFlushMs = nowMs();
        }
        if (out.length > 0) subscriber.next(out);
        coalescer.keepPending();
        // One timer at a time: where a flush came first, it fires early and waits out the rest.
        if (coalescer.hasPending) deadline ??= scheduler.schedule(onDeadline, waitMs);
      };
      const onDeadline = (): void => {
        deadline = undefined;
        if (coalescer.hasPending) release([], false);
      };

      subscriber.add(() => {
        deadline?.unsubscribe();
        coalescer.free();
      });
      subscriber.add(
        source.subscribe({
          next(batch) {
            const out: PlacementBatch = [];
            for (const event of batch) coalescer.push(event, out);
            release(out, false);
          },
          error: (error: unknown) => subscriber.error(error),
          complete() {
            release([], true);
            subscriber.complete();
          },
        }),
      );
    });
}
