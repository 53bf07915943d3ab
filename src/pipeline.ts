/**
 * The data path of one relay: an engine's native batches in, messages on the event plane out.
 *
 * Runs     to its end within the call that pushes a batch; only the coalescer's deadline comes later.
 * Memory   a batch's lists live in the kernel until the caller reads the next message.
 * Stops    by completion: each stage flushes what it holds, and the last messages leave.
 */
import type { Observable, SchedulerLike } from 'rxjs';
import { coalesce } from './batching/coalesce.ts';
import { RefcountDedup } from './dedup/refcount-dedup.ts';
import { index } from './indexer/index-events.ts';
import type { LiveSet } from './indexer/live-set.ts';
import type { RelayMetrics } from './metrics/relay-metrics.ts';
import { detectGaps } from './processor/detect-gaps.ts';
import { normalize } from './processor/normalize.ts';
import type { NormalizerOptions } from './processor/normalizer.ts';
import { numberEvents } from './processor/number-events.ts';
import type { NativeBatch } from './protocol/native-batch.ts';
import { type PublishOptions, publish } from './sinks/publish.ts';
import type { RouterEventSink } from './sinks/sink.ts';
import { runStage } from './stage.ts';

export interface PipelineConfig extends NormalizerOptions, PublishOptions {
  readonly workerId: bigint;
  readonly batchingTimeoutMs: number;
  readonly maxBatchBlocks: number;
  readonly maxTrackedBlocks: number;
  readonly firstEventId?: number;
}

export interface PipelineDeps {
  readonly config: PipelineConfig;
  readonly liveSet: LiveSet | null;
  readonly sink: RouterEventSink;
  readonly metrics: RelayMetrics;
  /** Replaced where a test turns the clock itself. */
  readonly clock?: { readonly scheduler: SchedulerLike; readonly nowMs: () => number };
}

export function pipeline(native$: Observable<NativeBatch>, deps: PipelineDeps): Observable<void> {
  const { config, liveSet, sink, metrics, clock } = deps;
  const { maxBatchBlocks, maxTrackedBlocks, batchingTimeoutMs: timeoutMs } = config;
  return native$.pipe(
    normalize(config, metrics),
    detectGaps(metrics),
    coalesce({ maxBatchBlocks, timeoutMs, ...clock }, metrics),
    runStage(() => new RefcountDedup(maxTrackedBlocks, metrics)),
    numberEvents(config),
    index(liveSet),
    publish(sink, metrics, config),
  );
}
