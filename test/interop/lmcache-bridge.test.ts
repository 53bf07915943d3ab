/** The tests of bridges/lmcache, with the bus of each LMCache release that was fetched. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { canRun, PYTHON, versionsOf } from './engines.ts';

const BRIDGE = fileURLToPath(new URL('../../bridges/lmcache', import.meta.url));

for (const release of versionsOf('lmcache')) {
  test.skipIf(!canRun(release))(`bridges/lmcache with lmcache ${release.version}`, () => {
    const args = ['-m', 'pytest', '--quiet', '-p', 'no:cacheprovider', '-W', 'ignore', BRIDGE];
    const { status, stdout, stderr } = spawnSync(PYTHON, args, {
      env: { ...process.env, KVRELAY_LMCACHE: release.version, PYTHONPATH: BRIDGE },
      encoding: 'utf8',
    });
    // pytest ends with 0 only where something was collected and all of it passed.
    expect(status, `${stdout}\n${stderr}`).toBe(0);
    console.log(`lmcache ${release.version}: ${stdout.trim().split('\n').at(-1)}`);
  });
}
