/** The tests of bridges/dynamo, with the workers of each Dynamo release that was fetched. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { canRun, PYTHON, versionsOf } from './engines.ts';

const BRIDGE = fileURLToPath(new URL('../../bridges/dynamo', import.meta.url));

for (const release of versionsOf('ai-dynamo')) {
  test.skipIf(!canRun(release))(`bridges/dynamo with ai-dynamo ${release.version}`, () => {
    const folder = join(process.env.KVRELAY_ENGINES ?? '', `ai-dynamo-${release.version}`);
    const args = ['-m', 'pytest', '--quiet', '-p', 'no:cacheprovider', BRIDGE];
    const { status, stdout, stderr } = spawnSync(PYTHON, args, {
      env: { ...process.env, KVRELAY_AI_DYNAMO: folder, PYTHONPATH: BRIDGE },
      encoding: 'utf8',
    });
    // pytest ends with 0 only where something was collected and all of it passed.
    expect(status, `${stdout}\n${stderr}`).toBe(0);
    console.log(`ai-dynamo ${release.version}: ${stdout.trim().split('\n').at(-1)}`);
  });
}
