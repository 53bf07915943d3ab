/**
 * `npm start [-- args]`: installs and builds what is missing, then is the command line itself.
 *
 * The relay runs in this very process, so that signals reach it and its exit code is ours.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, ensureInstalled, ROOT } from './setup.mjs';

ensureInstalled();
ensureBuilt();
const main = join(ROOT, 'dist', 'cli', 'main.js');
const args = process.argv.slice(2);
process.argv = [process.execPath, main, ...(args.length > 0 ? args : ['demo'])];
await import(pathToFileURL(main).href);
