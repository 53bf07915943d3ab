/**
 * Finds an etcd for the tests, and fetches one where the machine has none.
 *
 *   node scripts/etcd-server.mjs [--local]    prints its path; --local fetches nothing
 *
 * Order    KVRELAY_ETCD_SERVER, PATH, the cache folder, then Debian's package: downloaded and unpacked, not
 *          installed, so that no service starts.
 * Writes   only the cache folder (`.cache`, or KVRELAY_CACHE_DIR).
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT, say } from './setup.mjs';

const PACKAGE = 'etcd-server';
const FETCH_TIMEOUT_MS = 90_000;

/** A way that brought no server, with the reason in words. */
class PassedOver extends Error {}

/**
 * The first usable server: `{ path, version, how }`, or `{ path: null, reasons }` with one line for
 * each way that brought none.
 */
export function findEtcdServer({ localOnly = false } = {}) {
  const local = { KVRELAY_ETCD_SERVER: fromEnvironment, PATH: fromPath, cache: fromCache };
  const reasons = [];
  for (const [how, find] of Object.entries(localOnly ? local : { ...local, Debian: fromDebian })) {
    try {
      const path = find();
      return { path, version: versionOf(path), how };
    } catch (error) {
      if (!(error instanceof PassedOver)) throw error;
      reasons.push(`${how}: ${error.message}`);
    }
  }
  return { path: null, reasons };
}

/**
 * Tells the tests, by environment, which server there is, or why there is none. Returns the reasons in one
 * line, null where there is a server.
 */
export function offerEtcdServer() {
  const server = findEtcdServer();
  if (server.path === null) {
    process.env.KVRELAY_ETCD_MISSING = server.reasons.join('; ');
    return process.env.KVRELAY_ETCD_MISSING;
  }
  say(`testing against etcd ${server.version} (${server.how})`);
  process.env.KVRELAY_ETCD_SERVER = server.path;
  return null;
}

function fromEnvironment() {
  const path = process.env.KVRELAY_ETCD_SERVER;
  if (!path) throw new PassedOver('not set');
  return resolve(path);
}

function fromPath() {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder || '.', 'etcd');
    if (spawnSync(path, ['--version']).status === 0) return resolve(path);
  }
  throw new PassedOver('no etcd there');
}

function fromCache() {
  const path = join(cacheFolder(), 'etcd');
  if (spawnSync(path, ['--version']).status === 0) return path;
  throw new PassedOver('none there');
}

function fromDebian() {
  const home = cacheFolder();
  mkdirSync(home, { recursive: true });
  const folder = mkdtempSync(join(home, 'fetch-'));
  try {
    try {
      run('apt-get', ['download', '-q', PACKAGE], folder);
    } catch (error) {
      if (process.getuid?.() !== 0) throw error;
      // The lists of packages may be missing or old.
      run('apt-get', ['update', '-qq'], folder);
      run('apt-get', ['download', '-q', PACKAGE], folder);
    }
    const archive = readdirSync(folder).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new PassedOver('apt-get brought nothing');
    run('dpkg-deb', ['-x', archive, 'root'], folder);
    const path = join(home, 'etcd');
    renameSync(join(folder, 'root', 'usr', 'bin', 'etcd'), path);
    return path;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function cacheFolder() {
  return resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'), 'etcd-server');
}

function versionOf(path) {
  const version = /etcd Version: (\S+)/.exec(run(path, ['--version']))?.[1];
  if (version === undefined) throw new PassedOver(`${path} tells no version`);
  return version;
}

/** Runs to the end and returns stdout; anything else is a reason to pass the way over. */
function run(command, args, cwd = ROOT) {
  const options = { cwd, encoding: 'utf8', timeout: FETCH_TIMEOUT_MS };
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  if (status === 0) return stdout;
  const lastLine = `${stdout ?? ''}\n${stderr ?? ''}`.trim().split('\n').at(-1);
  throw new PassedOver(`${command} failed: ${error?.message ?? lastLine}`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const found = findEtcdServer({ localOnly: process.argv.includes('--local') });
  if (found.path === null) process.stderr.write(`${found.reasons.join('\n')}\n`);
  else process.stdout.write(`${found.path}\n`);
  process.exitCode = found.path === null ? 1 : 0;
}
