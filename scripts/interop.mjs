/**
 * `npm run test:interop [-- --all-versions] [vitest args]`: installs, builds, gets the engines' own
 * publishers, Dynamo's workers and what they need, then is vitest itself.
 *
 *   --all-versions    every engine version of test/peers/fetch_engines.py, not only the newest;
 *                     KVRELAY_INTEROP_ALL_VERSIONS=1 does the same
 *
 * Needs    python3 with venv, and PyPI the first time: about 700 MB of wheels pass through, Dynamo's runtime
 *          among them, which the benchmark uses too. Mooncake needs Linux, and InfiniBand libraries, which come
 *          from Debian packages (`apt-get download`) where they are not installed.
 * Missing  parts are left out and named at the end; with KVRELAY_REQUIRE_ALL=1 each is a failure.
 * Writes   only the cache folder (`.cache`, or KVRELAY_CACHE_DIR).
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { findDynamo } from '../bench/dynamo-env.mjs';
import { offerNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, ROOT, runVitest, say } from './setup.mjs';

const ENGINES = ['vllm', 'sglang', 'lmcache', 'ai-dynamo', 'mooncake-master', 'mooncake-client'];
/** It alone asks for the system libraries that it shares with the master: one download at a time. */
const ENGINE_WITH_LIBRARIES = 'mooncake-client';
const PYTHONS = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11'];
const MIN_PYTHON_MINOR = 11;
const VENV_TIMEOUT_MS = 180_000;
/** The largest wheel has 336 MB. */
const WHEEL_TIMEOUT_SECONDS = 240;

const PEERS = join(ROOT, 'test', 'peers');
const CACHE = resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'));
const VENV = join(CACHE, 'interop-venv');
const VENV_PYTHON = join(VENV, 'bin', 'python');

const PYTHON_ENV = {
  ...process.env,
  KVRELAY_ENGINES: process.env.KVRELAY_ENGINES || join(CACHE, 'engines'),
  PIP_NO_INPUT: '1',
  // Compiled modules go to the cache too: the source folders stay as they are.
  PYTHONPYCACHEPREFIX: join(CACHE, 'interop-pycache'),
};

/** What the programs of test/peers need beside Dynamo's own packages. */
const DYNAMO_PEER_PACKAGES = ['nats-py==2.15.0', 'msgpack==1.2.4'];

const missing = [];

/** Notes a part that cannot be had; fails where everything is required. */
function leaveOut(reason) {
  if (process.env.KVRELAY_REQUIRE_ALL === '1') fail(reason);
  say(`left out: ${reason}`);
  missing.push(reason);
}

/** A Python in an environment with the peers' packages; null where it cannot be made. */
function findPython() {
  const python = PYTHONS.find((name) => minorOf(name) >= MIN_PYTHON_MINOR);
  if (python === undefined) {
    leaveOut(`no python3 of version 3.${MIN_PYTHON_MINOR} or newer`);
    return null;
  }
  const requirements = join(PEERS, 'requirements.txt');
  const minor = minorOf(python);
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  const stamp = join(VENV, 'kvrelay-requirements');
  if (textOf(stamp) === wanted && minorOf(VENV_PYTHON) === minor) return VENV_PYTHON;

  say('making the Python environment of the engines');
  rmSync(VENV, { recursive: true, force: true });
  mkdirSync(CACHE, { recursive: true });
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-cache-dir', '--disable-pip-version-check'];
  const steps = [
    [python, '-m', 'venv', VENV],
    [VENV_PYTHON, ...pip, '-r', requirements],
  ];
  for (const [command, ...args] of steps) {
    const step = spawnSync(command, args, {
      encoding: 'utf8',
      env: PYTHON_ENV,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: VENV_TIMEOUT_MS,
    });
    if (step.status !== 0) {
      const why = step.error?.message ?? lastLinesOf(`${step.stdout}\n${step.stderr}`);
      leaveOut(`no Python environment: ${args.slice(0, 3).join(' ')} failed: ${why}`);
      return null;
    }
  }
  writeFileSync(stamp, wanted);
  return VENV_PYTHON;
}

/** The minor version of a Python 3; -1 where there is none. */
function minorOf(python) {
  const code = 'import sys; print(*sys.version_info[:2])';
  const { status, stdout } = spawnSync(python, ['-c', code], { encoding: 'utf8' });
  const [major, minor] = status === 0 ? stdout.split(' ').map(Number) : [];
  return major === 3 ? minor : -1;
}

/** Fetches each engine's versions one after the other, the engines side by side; what came. */
async function fetchEngines(python, allVersions) {
  const failures = [];
  const lists = ENGINES.map(async (engine) => {
    const list = await runPython(python, ['--list', ...(allVersions ? ['--all'] : []), engine]);
    if (list.status !== 0) fail(`test/peers/fetch_engines.py cannot be run: ${list.lastLines}`);
    const fetched = [];
    for (const item of list.stdout.trim().split('\n')) {
      const bound = ['--seconds', String(WHEEL_TIMEOUT_SECONDS)];
      if (engine !== ENGINE_WITH_LIBRARIES) bound.push('--no-debs');
      const { status, lastLines } = await runPython(python, [...bound, item]);
      if (status === 0) fetched.push(item);
      else failures.push(`no ${item}: ${lastLines}`);
    }
    return fetched;
  });
  const fetched = (await Promise.all(lists)).flat();
  // Only now, as a failure ends the process: no download may go on behind its back.
  failures.forEach(leaveOut);
  return fetched;
}

function runPython(python, args) {
  return new Promise((settle) => {
    const child = spawn(python, [join(PEERS, 'fetch_engines.py'), ...args], {
      env: PYTHON_ENV,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text;
      });
    }
    child.once('close', (status) => {
      settle({ status, stdout: output.stdout, lastLines: lastLinesOf(output.stderr) });
    });
  });
}

/** pip says in one line what it did not find, and in the one before why. */
function lastLinesOf(text) {
  return text.trim().split('\n').slice(-2).join('; ');
}

function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

const args = process.argv.slice(2);
const allVersions =
  args.includes('--all-versions') || process.env.KVRELAY_INTEROP_ALL_VERSIONS === '1';

ensureInstalled();
ensureBuilt();
const startMs = performance.now();
const missingServer = offerNatsServer();
if (missingServer !== null) leaveOut(`no nats-server: ${missingServer}`);
const python = findPython();
if (python !== null) {
  const which = allVersions ? 'all versions of the engines' : 'the newest engines';
  say(`looking for ${which}; wheels that are not in the cache take a while`);
  const engines = await fetchEngines(python, allVersions);
  say(`testing ${engines.join(' ') || 'no engine'}`);
  process.env.KVRELAY_INTEROP_PYTHON = python;
  process.env.KVRELAY_INTEROP_ENGINES = engines.join(' ');
  process.env.KVRELAY_ENGINES = PYTHON_ENV.KVRELAY_ENGINES;
  process.env.PYTHONPYCACHEPREFIX = PYTHON_ENV.PYTHONPYCACHEPREFIX;
}
const dynamo = findDynamo(CACHE, DYNAMO_PEER_PACKAGES);
if (dynamo.python === null) leaveOut(`no Dynamo: ${dynamo.reason}`);
process.env.KVRELAY_INTEROP_DYNAMO = dynamo.python ?? '';
process.env.KVRELAY_INTEROP_MISSING = missing.join('\n');
say(`set up in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);

const rest = args.filter((arg) => arg !== '--all-versions');
await runVitest(['--config', 'vitest.interop.config.ts', ...rest]);
