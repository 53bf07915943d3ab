/**
 * One of the programs in test/peers as a process: an engine's own publisher on a free port.
 *
 * Start    it waits for `go()`, so that subscribers can join before the first batch.
 * Ends     with its standard input, which closes with the test process too; stop() waits for it.
 * Throws   when it ends early or is late, with the last of what it wrote.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/plane-collector.ts';
import { type EngineVersion, PYTHON } from './engines.ts';

const START_TIMEOUT_MS = 30_000;
const PUBLISH_TIMEOUT_MS = 90_000;
const STOP_TIMEOUT_MS = 5_000;
const START_ATTEMPTS = 3;

/** The program's last progress line. */
export interface Published {
  readonly batches: number;
  readonly events: number;
  readonly seconds: number;
  /** -1 where nothing was published. */
  readonly last_seq: number;
}

export interface EnginePorts {
  readonly port: number;
  readonly replayPort: number;
}

export class EngineDriver {
  readonly ports: EnginePorts;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #progress: Record<string, unknown>[] = [];
  #stderrTail = '';

  private constructor(
    { engine, version }: EngineVersion,
    ports: EnginePorts,
    flags: readonly string[],
  ) {
    const program = fileURLToPath(new URL(`../peers/${engine}_publisher.py`, import.meta.url));
    const { port, replayPort } = ports;
    const own = ['--version', version, '--wait-stdin', '--hold', '-1'];
    own.push('--port', String(port), '--replay-port', String(replayPort));
    this.ports = ports;
    this.#child = spawn(PYTHON, [program, ...own, ...flags], {
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    this.#exited = once(this.#child, 'close');
    // A program that ends early breaks the pipe; its exit is what gets reported.
    this.#child.stdin?.on('error', () => undefined);
    let rest = '';
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderrTail = (this.#stderrTail + text).slice(-4_096);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      this.#progress.push(...lines.flatMap(progressOf));
    });
  }

  /**
   * Resolves once its sockets are bound; another process can take a free port first. With `ports` it
   * takes those, as an engine that is started again does.
   */
  static async start(
    engine: EngineVersion,
    flags: readonly string[],
    ports?: EnginePorts,
  ): Promise<EngineDriver> {
    for (let attempt = 1; ; attempt++) {
      const driver = new EngineDriver(engine, ports ?? (await freePorts()), flags);
      try {
        await driver.#reached('ready', START_TIMEOUT_MS);
        return driver;
      } catch (error) {
        await driver.stop();
        const isPortTaken = driver.#stderrTail.includes('Address already in use');
        if (!isPortTaken || attempt === START_ATTEMPTS) throw error;
      }
    }
  }

  get endpoint(): string {
    return `tcp://127.0.0.1:${this.ports.port}`;
  }

  get replayEndpoint(): string {
    return `tcp://127.0.0.1:${this.ports.replayPort}`;
  }

  go(): void {
    this.#child.stdin?.write('go\n');
  }

  /** Resolves when all batches have left the engine's own queue. */
  async published(): Promise<Published> {
    return (await this.#reached('published', PUBLISH_TIMEOUT_MS)) as unknown as Published;
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end();
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(impatience);
  }

  async #reached(state: string, timeoutMs: number): Promise<Record<string, unknown>> {
    const find = (): Record<string, unknown> | undefined =>
      this.#progress.find((line) => line.state === state);
    const hasEnded = (): boolean =>
      this.#child.exitCode !== null || this.#child.signalCode !== null;
    await eventually(() => find() !== undefined || hasEnded(), timeoutMs);
    const line = find();
    if (line === undefined) {
      const how = hasEnded() ? 'ended' : 'is late';
      throw new Error(`The engine ${how} before "${state}":\n${this.#stderrTail}`);
    }
    return line;
  }
}

/** Progress comes as JSON objects among other lines, such as an engine's warnings. */
function progressOf(line: string): Record<string, unknown>[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? [value as Record<string, unknown>] : [];
  } catch {
    return [];
  }
}

async function freePorts(): Promise<EnginePorts> {
  return { port: await freePort(), replayPort: await freePort() };
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
