/**
 * `npm run test:faults [-- vitest args]`: the long trials whole, which CI plays scaled down.
 *
 * Runs     the test files that have a whole form, or those that are named, one after the other: they measure rates and memory.
 * Set-up   as `npm test`, but a missing nats-server is a failure here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { offerNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, ROOT, runVitest, say } from './setup.mjs';

/** What a test file with a whole form asks for, itself or through one of these. */
const HAS_WHOLE_FORM = /KVRELAY_FAULTS|support\/whole\.ts|play-seeds\.ts/;

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
const missing = offerNatsServer();
if (missing !== null) fail(`no nats-server to test against (${missing})`);
process.env.KVRELAY_FAULTS = 'whole';

const options = ['--no-file-parallelism', '--testTimeout=600000'];
const given = process.argv.slice(2);
const files = given.some((argument) => argument.startsWith('test/')) ? [] : filesWithWholeForm();
await runVitest([...options, ...files, ...given]);
