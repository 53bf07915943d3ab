/**
 * `npm run bench [-- flags]`: installs, builds and gets what is missing, then measures.
 *
 *   --quick              one pair, short streams
 *   --pairs N            runs of each relay (5; of latency and disturbance 2)
 *   --only A,B           of the streams decode, prefill, trace-16, trace-512, and of the parts
 *                          latency      a paced engine at shares of the sustained rate; decode and prefill, or which of
 *                                       them is named; on the NATS plane the ZMQ plane follows, kvrelay alone
 *                          disturbance  a replay, dumps, an outage of NATS
 *                          start-up     until ready and until the first event; the first batches
 *                          growth       live blocks, ranks, event and block sizes, in process
 *                          index        its memory and its dump, in process
 *   --plane nats|zmq     plane of what is not in process (nats); disturbance and start-up are of NATS only
 *   --routers N          of the ZMQ plane, beside the subscriber that counts: they read and forget (0)
 *   --in-process         only what needs no other process
 *   --no-dynamo          without Dynamo's publisher beside kvrelay
 *   --profile            afterwards one more run of kvrelay a stream under V8's profiler
 *   --out FILE           the figures as JSON (.cache/bench.json)
 *
 * Needs    Linux for the end-to-end runs; PyPI once, for Dynamo's publisher.
 * Missing  parts are left out and named; with KVRELAY_REQUIRE_ALL=1 each is a failure.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { endWithUs } from '../bench/processes.mjs';
import { findNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, ROOT, say } from './setup.mjs';

// No collection may fall between two heap readings, or garbage would be counted too low.
const HEAP_FLAGS = ['--expose-gc', '--max-semi-space-size=1024', '--min-semi-space-size=1024'];
const QUIET_SHARE = 0.1;
/** Beside the streams. */
const PARTS = ['latency', 'disturbance', 'start-up', 'growth', 'index'];
const CACHE = resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'));

function readOptions() {
  try {
    return parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        pairs: { type: 'string' },
        only: { type: 'string' },
        plane: { type: 'string', default: 'nats' },
        routers: { type: 'string', default: '0' },
        'in-process': { type: 'boolean', default: false },
        'no-dynamo': { type: 'boolean', default: false },
        profile: { type: 'boolean', default: false },
        out: { type: 'string', default: join(CACHE, 'bench.json') },
      },
    }).values;
  } catch (error) {
    return fail(error.message);
  }
}

function leaveOut(reason) {
  if (process.env.KVRELAY_REQUIRE_ALL === '1') fail(reason);
  say(`left out: ${reason}`);
}

function measureInProcess(streams) {
  const flags = ['--only', streams.join(','), ...(options.quick ? ['--quick'] : [])];
  return measureApart('in-process.mjs', HEAP_FLAGS, flags);
}

function measureIndex() {
  return measureApart('index-size.mjs', [], options.quick ? ['--blocks', '100000'] : []);
}

function measureGrowth() {
  return measureApart('growth.mjs', [], options.quick ? ['--quick'] : []);
}

/** Its tables go straight to stdout, its figures come back. */
function measureApart(name, nodeFlags, flags) {
  const script = fileURLToPath(new URL(`../bench/${name}`, import.meta.url));
  const args = [...nodeFlags, script, ...flags];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  endWithUs(child);
  return new Promise((settle) => {
    let figures = null;
    child.on('message', (message) => {
      figures = message;
    });
    child.once('close', (status) => {
      if (status !== 0) fail(`bench/${name} failed`);
      settle(figures);
    });
  });
}

/** Share of all cores that others use, 0 to 1, over a second in which the bench does nothing. */
async function busyShare() {
  const times = () => {
    const all = cpus().map((core) => core.times);
    const idle = all.reduce((sum, core) => sum + core.idle, 0);
    const spent = all.flatMap(Object.values).reduce((sum, ms) => sum + ms, 0);
    return { idle, spent };
  };
  const before = times();
  await sleep(1000);
  const after = times();
  return 1 - (after.idle - before.idle) / (after.spent - before.spent);
}

/** Streams and parts that are asked for. */
function chosen() {
  const names = options.only?.split(',') ?? [...STREAM_NAMES, ...PARTS];
  const known = [...STREAM_NAMES, ...PARTS];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) fail(`--only takes ${known.join(', ')}, not ${unknown.join(', ')}`);
  return {
    streams: STREAM_NAMES.filter((name) => names.includes(name)),
    parts: PARTS.filter((part) => names.includes(part)),
  };
}

/** Where the other processes stand; null where there can be none. */
function findBed() {
  if (process.platform !== 'linux') {
    return leaveOut('end to end: times and memory of a process are read from /proc') ?? null;
  }
  const server = findNatsServer();
  if (server.path === null && options.plane === 'nats') {
    return leaveOut(`end to end, no nats-server: ${server.reasons.join('; ')}`) ?? null;
  }
  let python = null;
  if (!options['no-dynamo'] && options.plane === 'nats') {
    const dynamo = findDynamo(CACHE);
    ({ python } = dynamo);
    if (python === null) leaveOut(`${DYNAMO_PACKAGE}: ${dynamo.reason}`);
  }
  const { plane, quick: isQuick } = options;
  return { plane, isQuick, serverPath: server.path, python, routers };
}

async function measureProcesses() {
  const found = findBed();
  if (found === null) return {};
  const broker = options.plane === 'nats' ? await startBroker(found.serverPath) : null;
  const bed = { ...found, natsUrl: broker?.url ?? null };
  const runs = new ProcessRuns(bed, say);
  const has = (part) => parts.includes(part);
  const isNats = options.plane === 'nats';
  const measured = { endToEnd: await runs.endToEnd(streams, pairs) };
  if (options.profile) await runs.profiles(streams, join(CACHE, 'bench-profile'));
  if (has('latency')) {
    const named = LATENCY_STREAMS.filter((name) => streams.includes(name));
    measured.latency = await runs.latency(named.length > 0 ? named : LATENCY_STREAMS, morePairs);
  }
  if (options.only !== undefined && !isNats && (has('disturbance') || has('start-up'))) {
    say('disturbance and start-up of relays are measured on the NATS plane only');
  }
  if (has('disturbance') && isNats) measured.disturbances = await runs.disturbances(morePairs);
  if (has('start-up') && isNats) measured.starts = await runs.starts(pairs);
  await broker?.stop();
  return measured;
}

const options = readOptions();
ensureInstalled();
ensureBuilt();
const { STREAM_NAMES } = await import('../bench/streams.mjs');
const { startBroker } = await import('../bench/broker.mjs');
const { findDynamo, DYNAMO_PACKAGE } = await import('../bench/dynamo-env.mjs');
const { LATENCY_STREAMS } = await import('../bench/latency.mjs');
const { ProcessRuns } = await import('../bench/process-runs.mjs');
const { streams, parts } = chosen();
if (!['nats', 'zmq'].includes(options.plane)) fail('--plane takes nats or zmq');
const routers = Number(options.routers);
if (!Number.isInteger(routers) || routers < 0) fail('--routers takes a number of 0 or more');
if (routers > 0 && options.plane !== 'zmq') fail('--routers is of --plane zmq');
const pairs = Number(options.pairs ?? (options.quick ? 1 : 5));
if (!Number.isInteger(pairs) || pairs < 1) fail('--pairs takes a number of 1 or more');
const morePairs = options.pairs === undefined ? Math.ceil(pairs / 3) : pairs;

const busyBefore = await busyShare();
if (busyBefore > QUIET_SHARE) {
  say(`others use ${Math.round(busyBefore * 100)} % of this machine: times will be too long`);
}
const startMs = performance.now();
const figures = {
  node: process.version,
  machine: {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    busyBefore: Number(busyBefore.toFixed(2)),
  },
  startedAt: new Date().toISOString(),
  isQuick: options.quick,
  inProcess: streams.length > 0 ? await measureInProcess(streams) : [],
  growth: parts.includes('growth') ? await measureGrowth() : null,
  index: parts.includes('index') ? await measureIndex() : null,
  warmUp: parts.includes('start-up') ? await measureApart('warm-up.mjs', [], []) : null,
  endToEnd: [],
  latency: [],
  disturbances: [],
  starts: [],
  ...(options['in-process'] ? {} : await measureProcesses()),
};
mkdirSync(dirname(resolve(options.out)), { recursive: true });
writeFileSync(options.out, `${JSON.stringify(figures, null, 2)}\n`);
const minutes = (performance.now() - startMs) / 60_000;
say(`${minutes.toFixed(1)} minutes; figures are in ${options.out}`);
