/** `kvrelay run` as a user starts it: the built program in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from './plane-collector.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export class RunProcess {
  readonly #child: ChildProcess;
  /** Log lines so far, each parsed. */
  readonly logs: Record<string, unknown>[] = [];

  constructor(argv: readonly string[], env: Record<string, string> = {}) {
    const { PATH = '' } = process.env;
    this.#child = spawn(process.execPath, [PROGRAM, ...argv], {
      env: { PATH, KVRELAY_WARM_UP: 'off', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let rest = '';
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      this.logs.push(...lines.map((line) => JSON.parse(line) as Record<string, unknown>));
    });
  }

  /** Address of the status server; empty until it stands. */
  get httpUrl(): string {
    const url = this.logs.find(({ http }) => http !== undefined)?.http;
    return typeof url === 'string' ? url : '';
  }

  /** Waits until every socket has been connected once. */
  async ready(): Promise<void> {
    await eventually(() => this.httpUrl !== '' || this.#child.exitCode !== null);
    const deadlineMs = performance.now() + 10_000;
    while (performance.now() < deadlineMs) {
      const { ok } = await fetch(`${this.httpUrl}/health/ready`);
      if (ok) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`kvrelay is not ready: ${JSON.stringify(this.logs)}`);
  }

  /** Sends SIGTERM where it still runs, and resolves with the exit code. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode !== null) return this.#child.exitCode;
    const exited = once(this.#child, 'close');
    this.#child.kill('SIGTERM');
    await exited;
    return this.#child.exitCode;
  }

  /** Resolves with the exit code once it has ended by itself. */
  async exited(): Promise<number | null> {
    if (this.#child.exitCode === null) await once(this.#child, 'close');
    return this.#child.exitCode;
  }

  /** A crash: nothing is cleaned up. */
  async kill(): Promise<void> {
    const exited = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
