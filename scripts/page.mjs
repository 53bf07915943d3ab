/**
 * `npm run test:page [-- vitest args]`: installs, builds, finds a Chromium, then is vitest itself on
 * the tests of the status page.
 *
 * Browser  KVRELAY_CHROMIUM, PATH, else Debian's package where this is root.
 * Missing  it is said and nothing is tested; with KVRELAY_REQUIRE_ALL=1 it is a failure.
 */
import { spawnSync } from 'node:child_process';
import { ensureBuilt, ensureInstalled, fail, runVitest, say } from './setup.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const APT = 'apt-get';
const APT_TIMEOUT_MS = 300_000;
const APT_ENV = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };

function findChromium() {
  const named = process.env.KVRELAY_CHROMIUM;
  if (named)
    return versionOf(named) === null ? { reason: `${named} does not run` } : { path: named };
  const found = firstUsable();
  if (found !== null) return { path: found };
  const looked = `none of ${NAMES.join(', ')} on PATH`;
  if (process.getuid?.() !== 0) return { reason: `${looked}, and only root can install packages` };
  const failure = installFromDebian();
  const installed = failure === null ? firstUsable() : null;
  return installed === null
    ? { reason: `${looked}; ${failure ?? 'it is still not there'}` }
    : { path: installed };
}

function firstUsable() {
  for (const name of NAMES) {
    // playwright-core does not look into PATH.
    const { status, stdout } = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' });
    const path = status === 0 ? stdout.trim() : '';
    if (path !== '' && versionOf(path) !== null) return path;
  }
  return null;
}

function versionOf(path) {
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: 30_000 });
  return status === 0 ? stdout.trim() : null;
}

/** Null where it came, else why not. */
function installFromDebian() {
  say(`installing chromium with ${APT}`);
  const steps = [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', 'chromium'],
  ];
  for (const args of steps) {
    const step = spawnSync(APT, args, {
      encoding: 'utf8',
      env: APT_ENV,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: APT_TIMEOUT_MS,
    });
    if (step.status === 0) continue;
    const lastLine = `${step.stdout ?? ''}\n${step.stderr ?? ''}`.trim().split('\n').at(-1);
    return `${APT} ${args[0]} failed: ${step.error?.message ?? lastLine}`;
  }
  return null;
}

ensureInstalled();
const { path, reason } = findChromium();
if (path === undefined) {
  if (process.env.KVRELAY_REQUIRE_ALL === '1') fail(`no browser to test the page with: ${reason}`);
  say(`left out: the tests of the status page, as there is no browser: ${reason}`);
} else {
  ensureBuilt();
  say(`testing the status page with ${versionOf(path)}`);
  process.env.KVRELAY_CHROMIUM = path;
  await runVitest(['--config', 'vitest.page.config.ts', ...process.argv.slice(2)]);
}
