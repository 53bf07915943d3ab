/**
 * What has to be there before anything runs: a Node that is new enough, the packages, the build.
 *
 * Imports  only Node's own modules by names that old versions have too, so that an old Node gets as
 *          far as the one line that tells it so.
 * Writes   progress to stderr; stdout belongs to the command that is started afterwards.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const MIN_NODE_MAJOR = 20;

/** The project's folder, without a slash at its end. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

export function say(line) {
  process.stderr.write(`kvrelay: ${line}\n`);
}

/** Says why in one line and ends the process. */
export function fail(line) {
  say(line);
  process.exit(1);
}

/** Path of the script behind a package's command, to be run by this Node without a shell. */
export function toolPath(packageName, command = packageName) {
  const folder = join(ROOT, 'node_modules', packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : bin[command]);
}

/** Becomes vitest with these arguments: its exit code is this process's. */
export async function runVitest(args) {
  process.chdir(ROOT);
  const vitest = toolPath('vitest');
  process.argv = [process.execPath, vitest, 'run', ...args];
  await import(pathToFileURL(vitest).href);
}

/** Installs the locked packages where they are missing or are not the locked ones. */
export function ensureInstalled() {
  requireNode();
  const hasLock = existsSync(join(ROOT, 'package-lock.json'));
  if (hasLock ? installedMatchesLock() : existsSync(join(ROOT, 'node_modules'))) return;

  const command = hasLock ? 'ci' : 'install';
  say(`installing packages (npm ${command})`);
  // Building needs the development packages, also where NODE_ENV is production.
  const args = [command, '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  const { npm_execpath: npmScript } = process.env;
  const npm = npmScript?.endsWith('.js')
    ? spawnSync(process.execPath, [npmScript, ...args], quiet())
    : spawnSync('npm', args, { ...quiet(), shell: process.platform === 'win32' });
  if (npm.status !== 0) {
    process.stderr.write(`${npm.stdout ?? ''}${npm.stderr ?? ''}`);
    fail(`npm ${command} failed: ${npm.error?.message ?? `exit code ${npm.status}`}`);
  }
}

/** Builds what is out of date, in a process of its own: the compilers' memory is not kept. */
export function ensureBuilt() {
  const script = join(ROOT, 'scripts', 'build.mjs');
  const build = spawnSync(process.execPath, [script], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  if (build.status !== 0) fail('the build failed');
}

function requireNode() {
  if (Number.parseInt(process.versions.node, 10) >= MIN_NODE_MAJOR) return;
  fail(`needs Node ${MIN_NODE_MAJOR} or newer, this is ${process.version}`);
}

/**
 * Compares what npm noted down as installed with the lock file, entry by entry. Times would tell
 * less: a checkout makes the lock file newer without changing it.
 */
function installedMatchesLock() {
  const installed = readPackages(join(ROOT, 'node_modules', '.package-lock.json'));
  const locked = readPackages(join(ROOT, 'package-lock.json'));
  if (installed === null || locked === null) return false;
  return Object.entries(locked).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    // Optional packages are left out where they do not fit the platform.
    if (found === undefined) return entry.optional === true || entry.devOptional === true;
    return found.version === entry.version && found.integrity === entry.integrity;
  });
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages ?? null;
  } catch {
    return null;
  }
}

function quiet() {
  return { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' };
}
