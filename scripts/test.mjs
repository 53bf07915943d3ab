/**
 * `npm test [-- vitest args]`: installs, builds, finds a nats-server, then is vitest itself.
 *
 * The tests get the server's path in KVRELAY_NATS_SERVER. Without a server those that need it are
 * left out and named at the end; with KVRELAY_REQUIRE_ALL=1 its absence is a failure.
 */
import { pathToFileURL } from 'node:url';
import { findNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, ROOT, say, toolPath } from './setup.mjs';

ensureInstalled();
ensureBuilt();

say('looking for a nats-server');
const server = findNatsServer();
if (server.path === null) {
  const reasons = server.reasons.join('; ');
  if (process.env.KVRELAY_REQUIRE_ALL === '1') fail(`no nats-server to test against (${reasons})`);
  process.env.KVRELAY_NATS_MISSING = reasons;
} else {
  say(`testing against nats-server ${server.version} (${server.how})`);
  process.env.KVRELAY_NATS_SERVER = server.path;
}

process.chdir(ROOT);
const vitest = toolPath('vitest');
process.argv = [process.execPath, vitest, 'run', ...process.argv.slice(2)];
await import(pathToFileURL(vitest).href);
