/** Ends a test's server with the test, however that ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';

const STOP_TIMEOUT_MS = 5_000;

/** Resolves when the server's process is gone, and its folder and guard with it. */
export function cleanUpAfter(child: ChildProcess, folder: string): Promise<void> {
  const guard = child.pid === undefined ? null : startGuard(child.pid, folder);
  return new Promise((resolve) => {
    const gone = (): void => {
      guard?.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
      resolve();
    };
    // 'close' and not 'exit': what the server had to say has then been read to its end.
    child.once('close', gone);
    // Without a process, as when the binary cannot be run, there is no exit either.
    child.once('error', () => child.pid === undefined && gone());
  });
}

export async function stopChild(child: ChildProcess, exited: Promise<void>): Promise<void> {
  child.kill('SIGTERM');
  // A server frozen by SIGSTOP would keep SIGTERM waiting.
  child.kill('SIGCONT');
  const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(impatience);
}

/** The last of what a server says on standard error. */
export function keepTail(child: ChildProcess): { text: string } {
  const log = { text: '' };
  child.stderr?.on('data', (bytes: Buffer) => {
    log.text = (log.text + bytes.toString('utf8')).slice(-4_096);
  });
  return log;
}

/**
 * Ends the server when this process is gone. An exit handler would not do: the test runner ends its
 * processes by signals. The guard's input closes however the process ends, and a group of its own
 * keeps Ctrl-C from it.
 */
function startGuard(pid: number, folder: string): ChildProcess {
  const script = 'read -r _; kill -9 "$0"; rm -rf "$1"';
  const guard = spawn('sh', ['-c', script, String(pid), folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.unref();
  (guard.stdin as Socket).unref();
  return guard;
}
