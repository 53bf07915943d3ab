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

      const release = (out: PlacementBatch, isEnd: boolean): void => {
        if (out.length > 0) lastFlushMs = nowMs();
        const waitMs = lastFlushMs + timeoutMs - nowMs();
        if (isEnd || waitMs <= 0) {
          coalescer.flush(out);
          lastFlushMs = nowMs();
        }
        if (out.length > 0) subscriber.next(out);
        coalescer.keepPending();
        // One timer at a time: where a flush came first, it fires early and waits out the rest.
        if (coalescer.hasPending) deadline ??= scheduler.schedule(onDeadline, Math.max(waitMs, 0));
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
