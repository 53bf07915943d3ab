/**
 * Latency under a paced engine: from a batch's leaving of the engine to the arrival, at the router's side, of the message
 * with the last block that it stored.
 *
 * Sustained  rate of a relay: batches a second of a run in which the engine sends everything at once.
 * Shares     of a relay's own sustained rate; and, `kvrelay at dynamo's rate`, the same absolute load for both. Dynamo
 *            at kvrelay's rate would be a queue that grows, and no latency.
 * Floor      at kvrelay's rate: what engine, plane and subscriber take by themselves, on the cores that there are.
 * Counted    the batches after LEAD_S, or half, of the run: until then code is still being compiled, on the cores that are measured.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measureRun, withEngine } from './end-to-end.mjs';
import { startDynamo, startFloor, startKvrelay } from './relays.mjs';
import { median, table } from './report.mjs';

const SHARES = [0.1, 0.5, 0.8];
const RUN_S = 4;
const LEAD_S = 2;
const PERCENTILES = { p50Ms: 0.5, p99Ms: 0.99, p999Ms: 0.999 };
/** What 80 % of a quick relay's rate needs for RUN_S. */
const BATCHES = { decode: 240_000, prefill: 90_000 };
export const LATENCY_STREAMS = Object.keys(BATCHES);
const QUICK_BATCHES = { decode: 8000, prefill: 2400 };

/** `{stream, plane, sustained, runs}`; `onRun` is told of each run. */
export async function measureLatency(name, bed, onRun) {
  const batches = (bed.isQuick ? QUICK_BATCHES : BATCHES)[name];
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  try {
    return await withEngine([name, '--batches', String(batches)], async (engine, stream) => {
      const context = { ...bed, engine, stream, folder };
      const { messageBytes, ...sustained } = await sustainedRates(context);
      context.messageBytes = messageBytes;
      const runs = [];
      for (let pair = 0; pair < bed.pairs; pair++) {
        for (const share of SHARES) {
          for (const side of sidesOf(sustained)) {
            const run = await measurePaced(side, share, context);
            runs.push(run);
            onRun(run);
          }
        }
      }
      return { stream: name, plane: bed.plane, sustained, runs };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Batches a second, medians of as many runs as there are pairs, and kvrelay's bytes out a batch. */
async function sustainedRates(context) {
  const rates = { kvrelay: [], dynamo: [] };
  const { batches } = context.stream;
  let messageBytes = 0;
  for (let pair = 0; pair < context.pairs; pair++) {
    const ours = await measureRun(startKvrelay, context);
    rates.kvrelay.push(batches / ours.seconds);
    messageBytes = Math.round(ours.bytes / batches);
    if (context.python === null) continue;
    const { seconds } = await measureRun(startDynamo, context);
    rates.dynamo.push(batches / seconds);
  }
  const dynamo = context.python && median(rates.dynamo);
  return { kvrelay: median(rates.kvrelay), dynamo, messageBytes };
}

function sidesOf({ kvrelay, dynamo }) {
  const own = { relay: 'kvrelay', start: startKvrelay, rate: kvrelay };
  const floor = { relay: "floor at kvrelay's rate", start: startFloor, rate: kvrelay };
  if (dynamo === null) return [own, floor];
  return [
    own,
    floor,
    { relay: 'dynamo', start: startDynamo, rate: dynamo },
    { relay: "kvrelay at dynamo's rate", start: startKvrelay, rate: dynamo },
  ];
}

async function measurePaced({ relay, start, rate }, share, context) {
  const { stream, folder } = context;
  const [left, arrived] = ['left', 'arrived'].map((name) => join(folder, name));
  const batchesPerSecond = Math.round(rate * share);
  const most = Math.min(stream.batches - 1, Math.ceil(batchesPerSecond * RUN_S));
  const isFloor = start === startFloor;
  const paced = { ...context, stream: { ...stream, batches: most + 1 } };
  const { lateMs, fault } = await measureRun(start, paced, {
    command: `pace ${batchesPerSecond} ${most} ${left}`,
    subscriberFlags: ['--arrivals', arrived, ...(isFloor ? ['--bytes'] : [])],
  });
  if (fault) throw new Error(`${stream.name}: ${fault}`);
  const samples = latencies(wordsOf(left), wordsOf(arrived), isFloor);
  const at = (part) => samples[Math.min(samples.length - 1, Math.floor(part * samples.length))];
  const percentiles = Object.entries(PERCENTILES).map(([name, part]) => [name, at(part) / 1e6]);
  return {
    relay,
    share,
    batchesPerSecond,
    batches: samples.length,
    ...Object.fromEntries(percentiles),
    maxMs: samples.at(-1) / 1e6,
    engineLateMs: lateMs,
  };
}

function wordsOf(path) {
  const { buffer, byteOffset, length } = readFileSync(path);
  return new BigUint64Array(buffer.slice(byteOffset, byteOffset + length));
}

/** Nanoseconds of each batch after the lead, least first. Arrivals are known by hash, or by number. */
function latencies(left, arrived, areNumbered) {
  const arrivals = new Map();
  for (let at = 0; at < arrived.length; at += 2) arrivals.set(arrived[at], arrived[at + 1]);
  const startNs = Number(left[1]);
  const leadNs = startNs + Math.min(LEAD_S * 1e9, (Number(left.at(-1)) - startNs) / 2);
  const samples = [];
  for (let at = 0; at < left.length; at += 2) {
    if (Number(left[at + 1]) < leadNs) continue;
    const arrivedNs = arrivals.get(areNumbered ? BigInt(at / 2) : left[at]);
    if (arrivedNs === undefined) throw new Error('a batch has not arrived');
    samples.push(Number(arrivedNs - left[at + 1]));
  }
  return samples.sort((a, b) => a - b);
}

/** Medians of the runs. */
export function latencyTable(measured) {
  const figures = ['batchesPerSecond', ...Object.keys(PERCENTILES), 'maxMs', 'engineLateMs'];
  const rows = measured.flatMap(({ stream, plane, runs }) => {
    const places = new Map(runs.map(({ relay, share }) => [`${share} ${relay}`, { relay, share }]));
    return [...places.values()].map(({ relay, share }) => {
      const own = runs.filter((run) => run.relay === relay && run.share === share);
      const middles = figures.map((figure) => median(own.map((run) => run[figure])));
      const [rate, ...ms] = middles;
      const shown = ms.map((value) => Number(value.toFixed(2)));
      return [stream, plane, `${share * 100} %`, relay, rate, ...shown];
    });
  });
  const head = ['stream', 'plane', 'load', 'relay', 'batches/s', 'p50 ms', 'p99 ms', 'p99.9 ms'];
  return table([...head, 'greatest ms', 'engine late ms'], rows);
}
