/**
 * The data path of one relay: an engine's native batches in, and clears of its rank where they belong
 * between them; messages on the event plane out.
 *
 * Runs     to its end within the call that pushes a batch; only the coalescer's deadline comes later.
 * Memory   a batch's lists live in the kernel until the caller reads the next message.
 * Stops    by completion: each stage flushes what it holds, and the last messages leave.
 */
import { identity, merge, type Observable, type SchedulerLike, tap } from 'rxjs';
import { coalesce } from './batching/coalesce.ts';
import { RefcountDedup, type RefcountDedupOptions } from './dedup/refcount-dedup.ts';
import { index } from './indexer/index-events.ts';
import type { LocalIndexer } from './indexer/local-indexer.ts';
import type { RelayMetrics } from './metrics/relay-metrics.ts';
import { detectGaps } from './processor/detect-gaps.ts';
import { dropEmptyStores } from './processor/drop-empty-stores.ts';
import { type LastCopyGone, normalize } from './processor/normalize.ts';
import type { NormalizerOptions } from './processor/normalizer.ts';
import { numberEvents } from './processor/number-events.ts';
import { OversizeSplitter } from './processor/oversize-splitter.ts';
import { diverges } from './protocol/compat.ts';
import type { NativeBatch } from './protocol/native-batch.ts';
import type { PlacementBatch } from './protocol/placement-event.ts';
import type { RankCleared } from './protocol/rank-cleared.ts';
import { type HeartbeatOptions, insertHeartbeats } from './router/insert-heartbeats.ts';
import { type PublishOptions, publish } from './sinks/publish.ts';
import type { RouterEventSink } from './sinks/sink.ts';
import { runStage } from './stage.ts';

export interface PipelineConfig
  extends NormalizerOptions,
    Pick<PublishOptions, 'publisher' | 'onTooLarge'> {
  readonly batchingTimeoutMs: number;
  readonly maxBatchBlocks: number;
  /** Root stores may be repeats of what is held; see RefcountDedup. */
  readonly fullReports: boolean;
  /** Most bytes of a message, in `safe`; the plane may allow fewer. */
  readonly maxMessageBytes: number;
}

/** Sees the engine's events pass, and adds events of its own behind them. */
export interface PlacementSource {
  observe(batch: PlacementBatch): void;
  readonly placements$: Observable<PlacementBatch>;
  /** It tells of the chunks that the engine's stream announces as well. */
  readonly tellsOfChunks?: boolean;
}

export interface PipelineDeps {
  readonly config: PipelineConfig;
  readonly indexer: LocalIndexer | null;
  readonly sink: RouterEventSink;
  readonly metrics: RelayMetrics;
  /** Absent where no router follows that could ask for what it missed. */
  readonly heartbeats?: HeartbeatOptions;
  /** Blocks that stores hold; absent where no key says which. */
  readonly placements?: PlacementSource | null;
  /** Absent where each batch leaves in messages of its own. */
  readonly joining?: Required<Pick<PublishOptions, 'atTurnEnd' | 'flush$'>>;
  /** Replaced where a test turns the clock itself. */
  readonly clock?: { readonly scheduler: SchedulerLike; readonly nowMs: () => number };
}

export function pipeline(
  native$: Observable<NativeBatch | RankCleared>,
  deps: PipelineDeps,
): Observable<void> {
  const { config, indexer, sink, metrics, heartbeats, joining, clock } = deps;
  const { compat, maxTrackedBlocks, maxBatchBlocks } = config;
  const fullReports = config.fullReports && diverges(compat, 'full-reports');
  const mustSplit = diverges(compat, 'split');
  // `strict` cuts by events and blocks alone: a message over the plane's limit is lost, ids and all.
  const maxMessageBytes = (): number =>
    mustSplit ? Math.min(config.maxMessageBytes, sink.maxMessageBytes) : Number.POSITIVE_INFINITY;
  // Counts tell the filter when an ambiguous block is gone: the one message that goes upstream.
  const lastCopyGone: LastCopyGone = { notify: null };
  const dedup: RefcountDedupOptions = {
    maxTrackedBlocks,
    fullReports,
    onLastCopyGone: (removed) => lastCopyGone.notify?.(removed),
  };
  const leavesChunks = deps.placements?.tellsOfChunks ?? false;
  const engine$ = native$.pipe(
    normalize({ ...config, leavesChunks }, metrics, lastCopyGone),
    detectGaps(metrics),
    dropEmptyStores(compat),
  );
  const placements$ = withPlacements(engine$, deps.placements ?? null).pipe(
    coalesce(
      { maxBatchBlocks, fullReports, timeoutMs: config.batchingTimeoutMs, ...clock },
      metrics,
    ),
    runStage(() => new RefcountDedup(dedup, metrics)),
    mustSplit ? runStage(() => new OversizeSplitter(maxMessageBytes)) : identity,
  );
  return placements$.pipe(
    heartbeats !== undefined && diverges(compat, 'heartbeat')
      ? insertHeartbeats({ ...heartbeats, ...clock })
      : identity,
    numberEvents(config),
    index(indexer),
    publish(sink, metrics, {
      ...config,
      maxMessageBytes,
      ...(diverges(compat, 'joined-messages') ? joining : {}),
    }),
  );
}

function withPlacements(
  engine$: Observable<PlacementBatch>,
  placements: PlacementSource | null,
): Observable<PlacementBatch> {
  if (placements === null) return engine$;
  return merge(engine$.pipe(tap((batch) => placements.observe(batch))), placements.placements$);
}
