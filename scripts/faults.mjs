/**
 * `npm run test:faults [-- vitest args]`: the long trials whole, which CI plays scaled down.
 *
 * Runs     the test files that have a whole form, one after the other: they measure rates and memory.
 * Set-up   as `npm test`, but a missing nats-server is a failure here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, ROOT, say, toolPath } from './setup.mjs';

/** What a test file with a whole form asks for, itself or through whole.ts. */
const HAS_WHOLE_FORM = /KVRELAY_FAULTS|support\/whole\.ts/;

function filesWithWholeForm() {
  const names = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .filter((path) => HAS_WHOLE_FORM.test(readFileSync(join(ROOT, path), 'utf8')))
    .sort();
}

ensureInstalled();
ensureBuilt();

say('looking for a nats-server');
const server = findNatsServer();
if (server.path === null) fail(`no nats-server to test against (${server.reasons.join('; ')})`);
say(`testing against nats-server ${server.version} (${server.how})`);
process.env.KVRELAY_NATS_SERVER = server.path;
process.env.KVRELAY_FAULTS = 'whole';

process.chdir(ROOT);
const vitest = toolPath('vitest');
const options = ['--no-file-parallelism', '--testTimeout=600000'];
const args = process.argv.slice(2);
process.argv = [process.execPath, vitest, 'run', ...options, ...filesWithWholeForm(), ...args];
await import(pathToFileURL(vitest).href);
