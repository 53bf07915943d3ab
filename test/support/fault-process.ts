/**
 * `kvrelay run` in a process of its own that a trial may signal, starve and look into: all that it wrote,
 * how it ended, and its pages. Killed with the test.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { eventually } from './plane-collector.ts';
import { READY_MS, RelayPages } from './relay-pages.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class FaultProcess extends RelayPages {
  /** Everything written to stdout and stderr, as it came. */
  output = '';
  /** Resolves when it has ended and all its output is here. */
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;

  /** Takes the flags of `run`; block size 4 and a free HTTP port unless given. */
  constructor(flags: readonly string[], env: Readonly<Record<string, string>> = {}) {
    super();
    const given = { '--http': '127.0.0.1:0', '--block-size': '4' };
    const rig = Object.entries(given).filter(([flag]) => !flags.includes(flag));
    const { PATH = '' } = process.env;
    this.#child = spawn(process.execPath, [PROGRAM, 'run', ...rig.flat(), ...flags], {
      env: { PATH, KVRELAY_WARM_UP: 'off', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => resolve({ code, signal }));
    });
    onTestFinished(async () => {
      this.#child.kill('SIGKILL');
      await this.exited;
    });
  }

  /** Resolves once its status page stands and every socket has been connected once. */
  static async ready(
    flags: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<FaultProcess> {
    const relay = await FaultProcess.started(flags, env);
    const deadlineMs = performance.now() + READY_MS;
    while (performance.now() < deadlineMs) {
      if ((await fetch(`${relay.httpUrl}/health/ready`)).ok) return relay;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`not ready: ${relay.output}`);
  }

  /** Resolves once its status page stands, whatever it still waits for. */
  static async started(
    flags: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<FaultProcess> {
    const relay = new FaultProcess(flags, env);
    await relay.until(() => relay.httpUrl !== '' || relay.hasEnded, READY_MS);
    if (relay.hasEnded) throw new Error(`ended at once: ${relay.output}`);
    return relay;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Whole lines; the last one is torn where the output does not end with a line feed. */
  get lines(): string[] {
    return this.output.split('\n').filter((line) => line !== '');
  }

  get logs(): Record<string, unknown>[] {
    const whole = this.output.slice(0, this.output.lastIndexOf('\n') + 1).split('\n');
    return whole
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  get httpUrl(): string {
    const url = /"http":"(http:[^"]+)"/.exec(this.output)?.[1];
    return url ?? '';
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends SIGTERM; resolves with how it ended and how long that took. */
  async terminate(): Promise<Exit & { readonly ms: number }> {
    const startMs = performance.now();
    this.kill('SIGTERM');
    return { ...(await this.exited), ms: performance.now() - startMs };
  }

  /** Fails where `condition` does not come to hold. */
  async until(condition: () => boolean, timeoutMs = 15_000): Promise<void> {
    if (!(await eventually(condition, timeoutMs))) {
      throw new Error(`still not so: ${String(condition)}\n${this.output.slice(-4000)}`);
    }
  }
}
