/**
 * `npm test [-- vitest args]`: installs, builds, finds a nats-server, then is vitest itself.
 *
 * The tests get the server's path in KVRELAY_NATS_SERVER. Without a server those that need it are
 * left out and named at the end; with KVRELAY_REQUIRE_ALL=1 its absence is a failure.
 */
import { offerNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, runVitest, say } from './setup.mjs';

ensureInstalled();
ensureBuilt();

say('looking for a nats-server');
const missing = offerNatsServer();
if (missing !== null && process.env.KVRELAY_REQUIRE_ALL === '1') {
  fail(`no nats-server to test against (${missing})`);
}

await runVitest(process.argv.slice(2));
