/**
 * One of the programs in test/peers as a process: an engine's own publisher on a free port.
 *
 * Start    it waits for `go()`, so that subscribers can join before the first batch.
 * Ends     with its standard input, which closes with the test process too; stop() waits for it.
 * Throws   when it ends early or is late, with the last of what it wrote.
 */
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';
import { type EngineVersion, PYTHON } from './engines.ts';
import { PeerProcess } from './peer-process.ts';

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
  readonly #process: PeerProcess;
  readonly #progress: Record<string, unknown>[] = [];

  private constructor(
    { engine, version }: EngineVersion,
    ports: EnginePorts,
    flags: readonly string[],
  ) {
    const { port, replayPort } = ports;
    const own = ['--version', version, '--wait-stdin', '--hold', '-1'];
    own.push('--port', String(port), '--replay-port', String(replayPort));
    this.ports = ports;
    this.#process = new PeerProcess({
      python: PYTHON,
      program: `${engine}_publisher`,
      flags: [...own, ...flags],
      speaksOn: 'stderr',
      onLine: (line) => this.#progress.push(...progressOf(line)),
      stopTimeoutMs: STOP_TIMEOUT_MS,
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
      const driver = new EngineDriver(engine, ports ?? (await enginePorts()), flags);
      try {
        await driver.#reached('ready', START_TIMEOUT_MS);
        return driver;
      } catch (error) {
        await driver.stop();
        const isPortTaken = driver.#process.tail.includes('Address already in use');
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
    this.#process.writeLine('go');
  }

  /** Resolves when all batches have left the engine's own queue. */
  async published(): Promise<Published> {
    return (await this.#reached('published', PUBLISH_TIMEOUT_MS)) as unknown as Published;
  }

  /** Ends it as a crash does. */
  kill(): Promise<void> {
    return this.#process.kill();
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }

  async #reached(state: string, timeoutMs: number): Promise<Record<string, unknown>> {
    const find = (): Record<string, unknown> | undefined =>
      this.#progress.find((line) => line.state === state);
    await eventually(() => find() !== undefined || this.#process.hasEnded, timeoutMs);
    const line = find();
    if (line === undefined) {
      const how = this.#process.hasEnded ? 'ended' : 'is late';
      throw new Error(`The engine ${how} before "${state}":\n${this.#process.tail}`);
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

async function enginePorts(): Promise<EnginePorts> {
  const port = await freePorts(2);
  return { port, replayPort: port + 1 };
}
