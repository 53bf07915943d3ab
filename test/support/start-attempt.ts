/** A start of `kvrelay run` that is expected to be refused: the built program, and how it ended. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface RefusedStart {
  /** Null where it had to be killed. */
  readonly exitCode: number | null;
  /** What it wrote to stderr, a line each. */
  readonly lines: readonly string[];
}

/** Resolves when the program has ended; it is killed after `limitMs`. */
export function attemptStart(flags: readonly string[], limitMs: number): Promise<RefusedStart> {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [PROGRAM, 'run', '--http', 'off', ...flags], {
    env: { PATH, KVRELAY_WARM_UP: 'off' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
  let text = '';
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode) => {
      clearTimeout(limit);
      resolve({ exitCode, lines: text.split('\n').filter((line) => line !== '') });
    });
  });
}
