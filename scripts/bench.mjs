/** `npm run bench`: installs and builds what is missing, then measures. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ensureBuilt, ensureInstalled } from './setup.mjs';

ensureInstalled();
ensureBuilt();
const bench = fileURLToPath(new URL('../bench/in-process.mjs', import.meta.url));
// No collection may fall between two heap readings, or garbage would be counted too low.
const flags = ['--expose-gc', '--max-semi-space-size=1024', '--min-semi-space-size=1024'];
const { status } = spawnSync(process.execPath, [...flags, bench, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
