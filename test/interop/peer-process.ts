/**
 * One program of test/peers as a process that speaks in lines.
 *
 * Ends   with its standard input, which closes with the test process too; `stop()` waits for it.
 * Tail   the last of what it wrote on standard error, for messages about its failures.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const TAIL_CHARACTERS = 8_192;

export interface PeerProcessOptions {
  readonly python: string;
  /** Its file's name, without the ending. */
  readonly program: string;
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly speaksOn: 'stdout' | 'stderr';
  readonly onLine: (line: string) => void;
  /** Until one that does not end by itself is killed. */
  readonly stopTimeoutMs: number;
}

export class PeerProcess {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #stopTimeoutMs: number;
  tail = '';

  constructor(options: PeerProcessOptions) {
    const { python, program, flags, env = {}, speaksOn, onLine, stopTimeoutMs } = options;
    const path = fileURLToPath(new URL(`../peers/${program}.py`, import.meta.url));
    this.#stopTimeoutMs = stopTimeoutMs;
    this.#child = spawn(python, [path, ...flags], {
      env: { ...process.env, ...env },
      stdio: ['pipe', speaksOn === 'stdout' ? 'pipe' : 'ignore', 'pipe'],
    });
    this.#closed = once(this.#child, 'close');
    // A program that ends early breaks the pipe; its exit is what gets reported.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => this.keep(text));
    const rest: string[] = [];
    this.#child[speaksOn]?.setEncoding('utf8').on('data', (text: string) => {
      rest.push(text);
      // A line may have many megabytes: joined once, when it ends.
      if (!text.includes('\n')) return;
      const lines = rest.splice(0).join('').split('\n');
      rest.push(lines.pop() ?? '');
      for (const line of lines) onLine(line);
    });
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Adds to the tail. */
  keep(text: string): void {
    this.tail = (this.tail + text).slice(-TAIL_CHARACTERS);
  }

  writeLine(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  send(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  /** An orderly end. */
  async stop(): Promise<void> {
    this.#child.stdin?.end();
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), this.#stopTimeoutMs);
    await this.#closed;
    clearTimeout(impatience);
  }

  /** A crash. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }
}
