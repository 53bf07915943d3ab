/**
 * What the data path costs without sockets: time an event and a block, bytes of garbage a batch.
 *
 * Run by `npm run bench`, against the built package, with a young generation so large that no
 * collection falls between two readings. Each stream runs ROUNDS times in a fresh relay; the median
 * counts.
 */
import { Subject } from 'rxjs';
import {
  arena,
  BatchReader,
  EnvelopeEncoder,
  LiveSet,
  pipeline,
  RelayMetrics,
  readFrames,
} from '../dist/index.js';
import { BLOCK_SIZE, decodeStream, prefillStream } from './streams.mjs';

const ROUNDS = 5;

/** Few enough batches that their garbage fits the young generation. */
const GARBAGE_BATCHES = 1000;

class NullSink {
  maxMessageBytes = Number.POSITIVE_INFINITY;
  bytes = 0;

  publish(message) {
    this.bytes += message.envelope.length;
  }
}

function createRelay() {
  const metrics = new RelayMetrics();
  const native$ = new Subject();
  const sink = new NullSink();
  const config = {
    workerId: 42n,
    blockSize: BLOCK_SIZE,
    batchingTimeoutMs: 0,
    maxBatchBlocks: 128,
    maxTrackedBlocks: 8_000_000,
    compat: 'safe',
    fullReports: false,
    maxMessageBytes: 1 << 20,
    imageTokenId: null,
    videoTokenId: null,
    envelopes: new EnvelopeEncoder(1),
  };
  const liveSet = new LiveSet(8_000_000, metrics);
  pipeline(native$, { config, liveSet, sink, metrics }).subscribe();
  const reader = new BatchReader({ compat: 'safe', engine: 'vllm' });
  return {
    metrics,
    sink,
    push(frames) {
      const message = readFrames(frames, 'safe');
      arena.reset();
      native$.next(reader.read(message.payload, performance.now()));
    },
    stop: () => native$.complete(),
  };
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

function runOnce(stream) {
  const relay = createRelay();
  const start = performance.now();
  for (const batch of stream) relay.push(batch.frames);
  const ms = performance.now() - start;
  relay.stop();
  return { ms, bytesOut: relay.sink.bytes };
}

/** Bytes of JavaScript heap that a batch leaves behind, in code that is warm. */
function garbagePerBatch(stream) {
  const relay = createRelay();
  const measured = Math.min(GARBAGE_BATCHES, stream.length >> 1);
  const warmUp = stream.length - measured;
  for (const batch of stream.slice(0, warmUp)) relay.push(batch.frames);
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = warmUp; i < stream.length; i++) relay.push(stream[i].frames);
  const bytes = process.memoryUsage().heapUsed - before;
  relay.stop();
  return bytes / measured;
}

function measure(name, stream) {
  const events = stream.reduce((sum, batch) => sum + batch.events, 0);
  const blocks = stream.reduce((sum, batch) => sum + batch.blocks, 0);
  runOnce(stream);
  const rounds = Array.from({ length: ROUNDS }, () => runOnce(stream));
  const ms = median(rounds.map((round) => round.ms));
  return {
    stream: name,
    batches: stream.length,
    events,
    blocks,
    ns_per_event: Math.round((ms * 1e6) / events),
    ns_per_block: Math.round((ms * 1e6) / blocks),
    us_per_batch: Number(((ms * 1000) / stream.length).toFixed(2)),
    events_per_s: Math.round((events * 1000) / ms),
    heap_bytes_per_batch: Math.round(garbagePerBatch(stream)),
    bytes_out_per_batch: Math.round(rounds[0].bytesOut / stream.length),
  };
}

const results = [measure('decode', decodeStream(20_000)), measure('prefill', prefillStream(1_000))];
console.table(results);
console.log(JSON.stringify({ node: process.version, results }));
