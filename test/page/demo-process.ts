/** `kvrelay demo` as a process of its own, as `npm start` runs it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { eventually } from '../support/plane-collector.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const START_MS = 20_000;

export class DemoProcess {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown[]>;
  #stdout = '';
  #stderr = '';

  private constructor(port: number) {
    this.#process = spawn(process.execPath, [MAIN, 'demo', '--http', `127.0.0.1:${port}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#exited = once(this.#process, 'exit');
    this.#process.stdout?.setEncoding('utf8').on('data', (text) => {
      this.#stdout += text;
    });
    this.#process.stderr?.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
  }

  /** Port 0 = a free one. */
  static async start(port = 0): Promise<DemoProcess> {
    const demo = new DemoProcess(port);
    const isUp = (): boolean => demo.#url !== undefined;
    if (!(await eventually(isUp, START_MS))) throw new Error(`${demo.#stdout}\n${demo.#stderr}`);
    return demo;
  }

  get #url(): string | undefined {
    return /status page {2}(http:\S+)\/\n/.exec(this.#stdout)?.[1];
  }

  get url(): string {
    return this.#url ?? '';
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Process id of the engine that plays now. */
  get enginePid(): number {
    const lines = this.#stderr.split('\n').filter((line) => line.includes('engine plays'));
    return Number(JSON.parse(lines.at(-1) ?? '{}').pid);
  }

  async status(): Promise<StatusSnapshot> {
    return (await (await fetch(`${this.url}/api/status`)).json()) as StatusSnapshot;
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exited;
    // One that was suspended has to wake up to see that its parent is gone.
    if (this.#stderr.includes('engine plays')) resume(this.enginePid);
  }
}

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT');
  } catch {
    // It has ended already.
  }
}
