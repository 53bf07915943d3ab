/**
 * `npm run bench [-- flags]`: installs, builds and gets what is missing, then measures.
 *
 *   --quick              one pair, short streams
 *   --pairs N            runs of each relay (5)
 *   --only A,B           of decode, prefill, trace-16, trace-512
 *   --plane nats|zmq     plane of the end-to-end runs (nats)
 *   --in-process         only what needs no other process
 *   --no-dynamo          without Dynamo's publisher beside kvrelay
 *   --profile            afterwards one more run of kvrelay a stream under V8's profiler
 *   --out FILE           the figures as JSON (.cache/bench.json)
 *
 * Needs    Linux for the end-to-end runs; PyPI once, for Dynamo's publisher.
 * Missing  parts are left out and named; with KVRELAY_REQUIRE_ALL=1 each is a failure.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { endWithUs } from '../bench/processes.mjs';
import { findNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, ROOT, say } from './setup.mjs';

// No collection may fall between two heap readings, or garbage would be counted too low.
const HEAP_FLAGS = ['--expose-gc', '--max-semi-space-size=1024', '--min-semi-space-size=1024'];
const CACHE = resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'));

function readOptions() {
  try {
    return parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        pairs: { type: 'string' },
        only: { type: 'string' },
        plane: { type: 'string', default: 'nats' },
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

async function measureEndToEnd(streams, pairs) {
  const { measureStream } = await import('../bench/end-to-end.mjs');
  const { startBroker } = await import('../bench/broker.mjs');
  const { findDynamo, DYNAMO_PACKAGE } = await import('../bench/dynamo-env.mjs');
  const { ratiosOf, ratiosTable, runsTable } = await import('../bench/report.mjs');
  const server = findNatsServer();
  if (server.path === null && options.plane === 'nats') {
    return leaveOut(`end to end, no nats-server: ${server.reasons.join('; ')}`) ?? [];
  }
  let python = null;
  if (!options['no-dynamo'] && options.plane === 'nats') {
    const dynamo = findDynamo(CACHE);
    ({ python } = dynamo);
    if (python === null) leaveOut(`${DYNAMO_PACKAGE}: ${dynamo.reason}`);
  }
  const broker = options.plane === 'nats' ? await startBroker(server.path) : null;
  const natsUrl = broker?.url ?? null;
  const bed = { plane: options.plane, isQuick: options.quick, pairs, natsUrl, python };
  const measured = [];
  for (const name of streams) {
    const { runs, ...rest } = await measureStream(name, bed, (_, { relay, seconds }) => {
      say(`${name}: ${relay} ${seconds.toFixed(2)} s`);
    });
    const others = ['dynamo', 'floor'].map((other) => [other, ratiosOf(runs, other)]);
    const ratios = Object.fromEntries(others.filter(([, ratio]) => ratio !== null));
    measured.push({ ...rest, ratios, runs });
  }
  const profiles = options.profile ? await profileStreams(streams, bed) : '';
  await broker?.stop();
  const title = `End to end, ${options.plane} plane, medians of ${pairs}`;
  process.stdout.write(
    `\n${title}\n\n${runsTable(measured)}\n\n${ratiosTable(measured)}\n${profiles}`,
  );
  return measured;
}

/** Self time of kvrelay's functions in one run of each stream, as tables. */
async function profileStreams(streams, bed) {
  const { measureStream } = await import('../bench/end-to-end.mjs');
  const { profileTable } = await import('../bench/profile.mjs');
  let text = '';
  for (const name of streams) {
    const folder = join(CACHE, 'bench-profile', name);
    rmSync(folder, { recursive: true, force: true });
    const nodeFlags = ['--cpu-prof', '--cpu-prof-dir', folder];
    await measureStream(name, { ...bed, pairs: 1, python: null, nodeFlags }, () => undefined);
    text += `\nkvrelay on ${name}, self time without idle; whole profile in ${folder}\n\n`;
    text += `${profileTable(folder)}\n`;
  }
  return text;
}

const options = readOptions();
ensureInstalled();
ensureBuilt();
const { STREAM_NAMES } = await import('../bench/streams.mjs');
const streams = options.only?.split(',') ?? STREAM_NAMES;
const unknown = streams.filter((name) => !STREAM_NAMES.includes(name));
if (unknown.length > 0) fail(`--only takes ${STREAM_NAMES.join(', ')}, not ${unknown.join(', ')}`);
if (!['nats', 'zmq'].includes(options.plane)) fail('--plane takes nats or zmq');
const pairs = Number(options.pairs ?? (options.quick ? 1 : 5));
if (!Number.isInteger(pairs) || pairs < 1) fail('--pairs takes a number of 1 or more');

const figures = {
  node: process.version,
  machine: {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
  },
  startedAt: new Date().toISOString(),
  isQuick: options.quick,
  inProcess: await measureInProcess(streams),
  // Beside the streams; who asks for some of those wants them alone.
  index: options.only === undefined ? await measureIndex() : null,
  endToEnd: [],
};
if (!options['in-process']) {
  if (process.platform === 'linux') figures.endToEnd = await measureEndToEnd(streams, pairs);
  else leaveOut('end to end: times and memory of a process are read from /proc');
}
mkdirSync(dirname(resolve(options.out)), { recursive: true });
writeFileSync(options.out, `${JSON.stringify(figures, null, 2)}\n`);
say(`figures are in ${options.out}`);
