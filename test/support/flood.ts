/** A flooding engine (see flooding-engine.mjs) as a test holds it. Killed with the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('flooding-engine.mjs', import.meta.url));

export interface FloodOptions {
  /** Messages; unbounded where only `seconds` are given. */
  readonly count?: number;
  readonly seconds?: number;
  /** Unsent messages above which the engine drops; 0, the default, drops none. */
  readonly sendHwm?: number;
  readonly messagesPerS?: number;
  /** Blocks in each store, 20 if absent. */
  readonly blocks?: number;
  readonly endpoint?: string;
}

export class Flood {
  readonly endpoint: string;
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  private constructor(child: ChildProcess, answers: AsyncIterator<string>, endpoint: string) {
    this.#child = child;
    this.#answers = answers;
    this.endpoint = endpoint;
  }

  static async start(options: FloodOptions): Promise<Flood> {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(child, 'close');
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value } = await answers.next();
    const { endpoint } = JSON.parse(String(value)) as { endpoint: string };
    return new Flood(child, answers, endpoint);
  }

  /** Sends the flood, and at each further call one more message; resolves with the number sent so far. */
  async send(): Promise<number> {
    this.#child.stdin?.write('\n');
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('the flood was ended');
    return (JSON.parse(String(value)) as { sent: number }).sent;
  }

  /** Ends it in the middle of whatever it sends. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
