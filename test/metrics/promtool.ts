/**
 * Prometheus' own checker, from PATH or out of Debian's package, which is unpacked and not installed:
 * no service starts.
 *
 * Writes   only the cache folder (`.cache`, or KVRELAY_CACHE_DIR).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NAME = 'promtool';
const TIMEOUT_MS = 90_000;

/** How long finding it may take in all. */
export const PROMTOOL_TIMEOUT_MS: number = 4 * TIMEOUT_MS;

export interface Promtool {
  /** Null where it cannot be had. */
  readonly path: string | null;
  readonly reason: string;
}

export function findPromtool(): Promtool {
  if (spawnSync(NAME, ['--version']).status === 0) return { path: NAME, reason: '' };
  const cache = resolve(process.env.KVRELAY_CACHE_DIR || join(ROOT, '.cache'), NAME);
  const path = join(cache, NAME);
  if (existsSync(path)) return { path, reason: '' };
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'fetch-'));
  try {
    const reason = unpackDebian(folder);
    if (reason === null) renameSync(join(folder, 'usr', 'bin', NAME), path);
    return reason === null ? { path, reason: '' } : { path: null, reason };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What `promtool check metrics` objects to; empty where it is content. */
export function promtoolComplaints(path: string, exposition: string): string {
  const { status, stdout, stderr } = spawnSync(path, ['check', 'metrics'], {
    input: exposition,
    encoding: 'utf8',
  });
  const said = `${stdout}${stderr}`.trim();
  return status === 0 ? said : said || `promtool ended with ${status}`;
}

/** Null where it came, else why not. Package lists may be missing or old; only root can renew them. */
function unpackDebian(folder: string): string | null {
  const download = (): string | null => run('apt-get', ['download', 'prometheus'], folder);
  let failure = download();
  if (failure !== null && process.getuid?.() === 0) {
    failure = run('apt-get', ['update', '-qq'], folder) ?? download();
  }
  if (failure !== null) return failure;
  const [archive] = readdirSync(folder).filter((name) => name.endsWith('.deb'));
  if (archive === undefined) return 'apt-get download brought no package';
  return run('dpkg', ['-x', archive, '.'], folder);
}

function run(command: string, args: readonly string[], cwd: string): string | null {
  const result = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: TIMEOUT_MS });
  if (result.status === 0) return null;
  const lastLine = `${result.stdout ?? ''}\n${result.stderr ?? ''}`.trim().split('\n').at(-1);
  return `${command} ${args[0]}: ${result.error?.message ?? lastLine ?? result.status}`;
}
