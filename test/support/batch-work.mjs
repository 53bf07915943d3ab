/**
 * What the data path does for a batch, counted and not timed, in a process of its own: a seeded stream (bench/streams.mjs,
 * live-blocks.mjs) from frames to messages, through a relay without sockets.
 *
 *   node [--expose-gc ...] batch-work.mjs calls|bytes decode|prefill|live BATCHES_A_TURN
 *
 * calls    of the kernel, by function
 * bytes    that it leaves on the JavaScript heap (`heap`) and in buffers (`buffers`), in code that is warm; stretches into
 *          which a collection fell are passed over. Of the heap's, the least counts: the compiler leaves something of
 *          its own now and then.
 * Says     a line of JSON: figures of one batch.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { LiveBlocks } from '../../bench/live-blocks.mjs';
import { median } from '../../bench/report.mjs';
import { decodeStream, prefillStream } from '../../bench/streams.mjs';

/** So many blocks that tables outgrow the cache: all are stored, and then some taken and others added. */
const LIVE_BLOCKS = 100_000;

function liveStream(batches) {
  const live = new LiveBlocks(LIVE_BLOCKS);
  const filling = [...live.fill()].map((frames) => ({ frames }));
  return [...filling, ...live.steps(batches - filling.length)];
}

const STREAMS = { decode: decodeStream, prefill: prefillStream, live: liveStream };
const STRETCHES = 9;
/** Batches: until the compiler is done and the ring of events is full, and of a stretch. */
const SIZES = {
  decode: { warmUp: 6400, stretch: 640 },
  prefill: { warmUp: 4224, stretch: 192 },
  live: { warmUp: 6400, stretch: 640 },
};

const [measure, name, batchesATurn] = process.argv.slice(2);
const { warmUp, stretch } = SIZES[name];
const stream = STREAMS[name](warmUp + STRETCHES * stretch);

const calls = {};
if (measure === 'calls') {
  const { Instance } = WebAssembly;
  // The functions of an instance cannot be replaced: the kernel is given others in their place.
  WebAssembly.Instance = function CountedInstance(...args) {
    const entries = Object.entries(new Instance(...args).exports).map(([key, value]) => [
      key,
      typeof value === 'function' ? counted(key, value) : value,
    ]);
    this.exports = Object.fromEntries(entries);
  };
}

function counted(key, call) {
  return (...args) => {
    calls[key] = (calls[key] ?? 0) + 1;
    return call(...args);
  };
}

const { createLoneRelay, loneConfig } = await import('../../bench/lone-relay.mjs');

const relay = createLoneRelay(loneConfig());
let at = 0;

async function play(batches) {
  for (const end = at + batches; at < end; ) {
    for (let turn = 0; turn < batchesATurn && at < end; turn++) {
      relay.push(stream[at++].frames);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function measureCalls() {
  const before = { ...calls };
  await play(stretch);
  const entries = Object.entries(calls).map(([key, count]) => [key, count - (before[key] ?? 0)]);
  return Object.fromEntries(
    entries.filter(([, count]) => count > 0).map(([key, count]) => [key, count / stretch]),
  );
}

async function measureBytes() {
  const collections = new PerformanceObserver(() => undefined);
  collections.observe({ entryTypes: ['gc'] });
  const heap = [];
  const buffers = [];
  for (let round = 0; round < STRETCHES; round++) {
    // Buffers that the first lets go are given back by the second.
    globalThis.gc();
    globalThis.gc();
    await settled();
    collections.takeRecords();
    const before = process.memoryUsage();
    await play(stretch);
    const after = process.memoryUsage();
    await settled();
    if (collections.takeRecords().length > 0) continue;
    heap.push((after.heapUsed - before.heapUsed) / stretch);
    buffers.push((after.arrayBuffers - before.arrayBuffers) / stretch);
  }
  if (heap.length < STRETCHES / 2) throw new Error('collections fell into the stretches');
  return { heap: Math.min(...heap), buffers: median(buffers) };
}

/** Collections are told of in a later turn. */
async function settled() {
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}

await play(warmUp);
console.log(JSON.stringify(await (measure === 'calls' ? measureCalls() : measureBytes())));
await relay.stop();
