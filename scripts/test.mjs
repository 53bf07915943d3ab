/**
 * `npm test [-- vitest args]`: installs, builds, finds a nats-server and an etcd, then is vitest itself.
 *
 * The tests get their paths in KVRELAY_NATS_SERVER and KVRELAY_ETCD_SERVER. Without one, those that need
 * it are left out and named at the end; with KVRELAY_REQUIRE_ALL=1 its absence is a failure.
 */
import { offerEtcdServer } from './etcd-server.mjs';
import { offerNatsServer } from './nats-server.mjs';
import { ensureBuilt, ensureInstalled, fail, runVitest, say } from './setup.mjs';

ensureInstalled();
ensureBuilt();

say('looking for a nats-server');
const missing = offerNatsServer();
if (missing !== null && process.env.KVRELAY_REQUIRE_ALL === '1') {
  fail(`no nats-server to test against (${missing})`);
}
say('looking for an etcd');
const missingEtcd = offerEtcdServer();
if (missingEtcd !== null && process.env.KVRELAY_REQUIRE_ALL === '1') {
  fail(`no etcd to test against (${missingEtcd})`);
}

await runVitest(process.argv.slice(2));
