/**
 * What the data path costs without sockets: time an event, a block and a stage, garbage a batch.
 *
 *   node --expose-gc bench/in-process.mjs [--only STREAMS] [--quick]
 *
 * Run by `npm run bench`, against the built package, with a young generation so large that no
 * collection falls between two readings. Each stream runs ROUNDS times in a fresh relay; the median
 * counts. Prints tables; a parent process gets the figures as a message.
 */
import { parseArgs } from 'node:util';
import { configOf, createRelay, NullSink } from './relay-in-process.mjs';
import { median, table } from './report.mjs';
import { STAGE_NAMES, timeStages } from './stages.mjs';
import { createStream, STREAM_NAMES } from './streams.mjs';

const ROUNDS = 5;

/** Few enough events, at the stream's end, that their garbage fits the young generation. */
const GARBAGE_EVENTS = 50_000;

function runOnce({ batches, blockSize }) {
  const relay = createRelay(blockSize);
  const start = performance.now();
  for (const batch of batches) relay.push(batch.frames);
  const ms = performance.now() - start;
  relay.stop();
  return { ms, bytesOut: relay.sink.bytes };
}

/** Bytes of JavaScript heap that a batch leaves behind, in code that is warm. */
function garbagePerBatch({ batches, blockSize }) {
  const relay = createRelay(blockSize);
  let warmUp = batches.length;
  for (let events = 0; warmUp > batches.length / 2 && events < GARBAGE_EVENTS; ) {
    warmUp--;
    events += batches[warmUp].events;
  }
  for (const batch of batches.slice(0, warmUp)) relay.push(batch.frames);
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = warmUp; i < batches.length; i++) relay.push(batches[i].frames);
  const bytes = process.memoryUsage().heapUsed - before;
  relay.stop();
  return bytes / (batches.length - warmUp);
}

function stageNsPerEvent({ batches, blockSize, events }) {
  const rounds = Array.from({ length: ROUNDS }, () =>
    timeStages(batches, configOf(blockSize), new NullSink()),
  );
  const entries = STAGE_NAMES.map((stage, at) => {
    const ms = median(rounds.map((totals) => totals[at]));
    return [stage, Math.round((ms * 1e6) / events)];
  });
  return Object.fromEntries(entries);
}

function measure(stream) {
  const { name, batches, events, blocks } = stream;
  runOnce(stream);
  const rounds = Array.from({ length: ROUNDS }, () => runOnce(stream));
  const ms = median(rounds.map((round) => round.ms));
  return {
    stream: name,
    batches: batches.length,
    events,
    blocks,
    nsPerEvent: Math.round((ms * 1e6) / events),
    nsPerBlock: Math.round((ms * 1e6) / blocks),
    usPerBatch: Number(((ms * 1000) / batches.length).toFixed(1)),
    eventsPerSecond: Math.round((events * 1000) / ms),
    heapBytesPerBatch: Math.round(garbagePerBatch(stream)),
    bytesOutPerBatch: Math.round(rounds[0].bytesOut / batches.length),
    stageNsPerEvent: stageNsPerEvent(stream),
  };
}

function print(results) {
  const whole = [
    ['batches', ({ batches }) => batches],
    ['events', ({ events }) => events],
    ['blocks', ({ blocks }) => blocks],
    ['ns/event', ({ nsPerEvent }) => nsPerEvent],
    ['ns/block', ({ nsPerBlock }) => nsPerBlock],
    ['us/batch', ({ usPerBatch }) => usPerBatch],
    ['events/s', ({ eventsPerSecond }) => eventsPerSecond],
    ['heap bytes/batch', ({ heapBytesPerBatch }) => heapBytesPerBatch],
    ['bytes out/batch', ({ bytesOutPerBatch }) => bytesOutPerBatch],
  ];
  const rows = results.map((result) => [result.stream, ...whole.map(([, of]) => of(result))]);
  const stages = results.map((result) => [
    result.stream,
    ...STAGE_NAMES.map((stage) => result.stageNsPerEvent[stage]),
  ]);
  process.stdout.write('\nIn process, without sockets\n\n');
  process.stdout.write(`${table(['stream', ...whole.map(([title]) => title)], rows)}\n`);
  process.stdout.write('\nIn process, each stage, ns/event\n\n');
  process.stdout.write(`${table(['stream', ...STAGE_NAMES], stages)}\n`);
}

const { values } = parseArgs({
  options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } },
});
const names = values.only?.split(',') ?? STREAM_NAMES;
const results = names.map((name) => measure(createStream(name, values.quick)));
print(results);
process.send?.(results);
