/** A relay without sockets: the data path of `src/pipeline.ts` with an index, as a worker has it. */
import { Subject } from 'rxjs';
import {
  arena,
  BatchReader,
  Publisher,
  pipeline,
  RelayMetrics,
  readFrames,
} from '../dist/index.js';
import { createIndexer } from './stages.mjs';

export class NullSink {
  maxMessageBytes = Number.POSITIVE_INFINITY;
  bytes = 0;

  publish(message) {
    this.bytes += message.envelope.length;
  }
}

export function configOf(blockSize) {
  return {
    blockSize,
    batchingTimeoutMs: 0,
    maxBatchBlocks: 128,
    maxTrackedBlocks: 8_000_000,
    compat: 'safe',
    fullReports: false,
    maxMessageBytes: 1 << 20,
    imageTokenId: null,
    videoTokenId: null,
    publisher: new Publisher({ workerId: 42n, publisherId: 1 }),
  };
}

/** Takes frames, and makes messages of them that go nowhere. */
export function createRelay(blockSize) {
  const metrics = new RelayMetrics();
  const native$ = new Subject();
  const sink = new NullSink();
  const config = configOf(blockSize);
  const indexer = createIndexer(metrics, config.publisher);
  pipeline(native$, { config, indexer, sink, metrics }).subscribe();
  const reader = new BatchReader({ compat: 'safe', engine: 'vllm' });
  return {
    sink,
    /** Blocks that it counts as held. */
    get held() {
      return metrics.trackedBlocks.device;
    },
    push(frames) {
      const message = readFrames(frames, 'safe');
      arena.reset();
      native$.next(reader.read(message.payload, performance.now()));
    },
    stop() {
      native$.complete();
      indexer.free();
    },
  };
}
