/**
 * `npm run check`: types, format, lint, unused code, build and package, without the tests.
 *
 * Steps of one group run at the same time; what they print comes in the order given here. A group
 * with a failure is the last one.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ensureInstalled, fail, ROOT, toolPath } from './setup.mjs';

const BUILD = join(ROOT, 'scripts', 'build.mjs');

ensureInstalled();

const groups = [
  [['kernel', BUILD, '--kernel-only']],
  [
    ['types', toolPath('typescript', 'tsc'), '--noEmit', '-p', 'tsconfig.json'],
    ['format and lint', toolPath('@biomejs/biome', 'biome'), 'check', '--error-on-warnings'],
    ['typed lint', toolPath('oxlint'), '--type-aware', '--deny-warnings'],
    ['unused code', toolPath('knip')],
  ],
  [['build', BUILD]],
  [['package', toolPath('publint'), '--strict']],
];

/** Runs one step to its end; its output is kept, so that steps side by side do not mix theirs. */
function run([title, script, ...args]) {
  return new Promise((resolve) => {
    const startMs = performance.now();
    const child = spawn(process.execPath, [script, ...args], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.on('close', (code, signal) => {
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      resolve({ title, seconds, output, ended: signal ?? code });
    });
  });
}

for (const group of groups) {
  const results = await Promise.all(group.map(run));
  for (const { title, seconds, output } of results) {
    process.stdout.write(`== ${title} (${seconds} s)\n${output}`);
  }
  const failed = results.filter(({ ended }) => ended !== 0).map(({ title }) => title);
  if (failed.length > 0) fail(`the check failed at: ${failed.join(', ')}`);
}
process.stdout.write('== all checks passed\n');
