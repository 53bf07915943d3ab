/**
 * The data path cut open: the stages of `src/pipeline.ts`, with a reading of the clock between them.
 *
 * A batch runs through all stages within one call, so the time between two readings is a stage's own.
 * Compare the sum with the whole of in-process.mjs: what differs is the clock.
 */
import { pipe, Subject, tap } from 'rxjs';
import {
  arena,
  BatchReader,
  coalesce,
  detectGaps,
  index,
  LocalIndexer,
  normalize,
  numberEvents,
  publish,
  RefcountDedup,
  RelayMetrics,
  readFrames,
  runStage,
} from '../dist/index.js';
import { dropEmptyStores } from '../dist/processor/drop-empty-stores.js';
import { OversizeSplitter } from '../dist/processor/oversize-splitter.js';

export const STAGE_NAMES = ['read', 'normalize', 'coalesce, dedup', 'encode, index', 'publish'];

/** An index as a worker has it. */
export function createIndexer(metrics, publisher) {
  const bounds = { maxBlocks: 8_000_000, maxEvents: 16_384, maxBytes: 32 << 20 };
  return new LocalIndexer({ publisher, ...bounds }, metrics);
}

/** Milliseconds in each stage, for all of a stream's batches. */
export function timeStages(batches, config, sink) {
  const metrics = new RelayMetrics();
  const indexer = createIndexer(metrics, config.publisher);
  const { maxMessageBytes, maxTrackedBlocks } = config;
  const lastCopyGone = { notify: null };
  const onLastCopyGone = (removed) => lastCopyGone.notify?.(removed);
  const dedup = { maxTrackedBlocks, fullReports: false, onLastCopyGone };

  const totals = new Float64Array(STAGE_NAMES.length);
  let last = 0;
  const mark = (stage) => {
    const now = performance.now();
    totals[stage] += now - last;
    last = now;
  };
  const native$ = new Subject();
  const upToDedup = pipe(
    normalize(config, metrics, lastCopyGone),
    detectGaps(metrics),
    dropEmptyStores(config.compat),
    tap(() => mark(1)),
    coalesce({ maxBatchBlocks: config.maxBatchBlocks, fullReports: false, timeoutMs: 0 }, metrics),
    runStage(() => new RefcountDedup(dedup, metrics)),
    tap(() => mark(2)),
  );
  const toPlane = pipe(
    runStage(() => new OversizeSplitter(() => maxMessageBytes)),
    numberEvents(config),
    index(indexer),
    tap(() => mark(3)),
    publish(sink, metrics, { ...config, maxMessageBytes: () => maxMessageBytes }),
    tap(() => mark(4)),
  );
  native$.pipe(upToDedup, toPlane).subscribe();

  const reader = new BatchReader({ compat: config.compat, engine: 'vllm' });
  for (const { frames } of batches) {
    last = performance.now();
    const { payload } = readFrames(frames, config.compat);
    arena.reset();
    const batch = reader.read(payload, last);
    mark(0);
    native$.next(batch);
  }
  native$.complete();
  indexer.free();
  return [...totals];
}
