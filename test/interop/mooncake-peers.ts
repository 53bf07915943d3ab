/**
 * Mooncake Store of test/peers: the real master and real clients, and an emulated store for what they cannot be
 * made to do. Each is a process that does what it is told, one command after the other.
 *
 * Ends     each with its standard input, which closes with the test process too; a master dies with its program.
 * Throws   when one ends early or is late, or a command fails, with the last of what it wrote.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';
import { canRun, newestOf, PYTHON } from './engines.ts';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const COMMAND_TIMEOUT_MS = 60_000;
const START_ATTEMPTS = 3;

/** What `operations` of a program in test/peers names, and its arguments. */
export type Command = { readonly op: string } & Readonly<Record<string, unknown>>;

type Answer = Readonly<Record<string, unknown>>;

/** Where a master, real or emulated, is reached. */
export interface MooncakePorts {
  readonly port: number;
  readonly rpc: number;
  readonly admin: number;
}

/** Whether the real master and client are here; with KVRELAY_REQUIRE_ALL=1 a missing one throws. */
export function mooncakeAvailable(): boolean {
  return canRun(newestOf('mooncake-master')) && canRun(newestOf('mooncake-client'));
}

/** Whether the emulated store can run. */
export function emulatorAvailable(): boolean {
  return PYTHON !== '' || canRun(newestOf('mooncake-client'));
}

class MooncakeProgram {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #answers: Answer[] = [];
  #asked = 0;
  #tail = '';

  constructor(name: string, flags: readonly string[]) {
    const path = fileURLToPath(new URL(`../peers/${name}.py`, import.meta.url));
    this.#name = name;
    this.#child = spawn(PYTHON, [path, ...flags], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#closed = once(this.#child, 'close');
    // A program that ends early breaks the pipe; its exit is what gets reported.
    this.#child.stdin?.on('error', () => undefined);
    let rest = '';
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      this.#answers.push(...lines.map((line) => JSON.parse(line) as Answer));
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#tail = (this.#tail + text).slice(-4_096);
    });
  }

  get log(): string {
    return this.#tail;
  }

  /** What it says of itself once it can be reached. */
  async ready(): Promise<Answer> {
    return this.#answer(this.#asked++, START_TIMEOUT_MS, 'to be ready');
  }

  /** The result of a command. Commands are done in the order in which they were asked for. */
  async ask(command: Command): Promise<unknown> {
    const place = this.#asked++;
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    const answer = await this.#answer(place, COMMAND_TIMEOUT_MS, command.op);
    if ('error' in answer) throw new Error(`${this.#name}, ${command.op}: ${String(answer.error)}`);
    return answer.result;
  }

  /** An orderly end: a client gives its segment back. */
  async stop(): Promise<void> {
    this.#child.stdin?.end();
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#closed;
    clearTimeout(impatience);
  }

  /** A crash. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }

  async #answer(place: number, timeoutMs: number, purpose: string): Promise<Answer> {
    const hasEnded = (): boolean =>
      this.#child.exitCode !== null || this.#child.signalCode !== null;
    await eventually(() => this.#answers.length > place || hasEnded(), timeoutMs);
    const answer = this.#answers[place];
    if (answer !== undefined) return answer;
    const how = hasEnded() ? 'ended' : 'is late';
    throw new Error(`${this.#name} ${how} (${purpose}):\n${this.#tail}`);
  }
}

/** A master or an emulated store. */
export class MooncakeMaster {
  readonly ports: MooncakePorts;
  readonly #program: MooncakeProgram;

  private constructor(program: MooncakeProgram, ports: MooncakePorts) {
    this.#program = program;
    this.ports = ports;
  }

  /** The real master, without a client. `ports` are those of one that has ended: a restart. */
  static start(flags: readonly string[] = [], ports?: MooncakePorts): Promise<MooncakeMaster> {
    return MooncakeMaster.#start(
      'mooncake_master',
      (port) => ['--serve', '--port', String(port), ...flags],
      ports,
    );
  }

  /** The emulated store; its commands are those of class Commanded in its program. */
  static startEmulator(
    flags: readonly string[] = [],
    ports?: MooncakePorts,
  ): Promise<MooncakeMaster> {
    const all = (port: number): string[] => {
      return ['--commands', '--port', String(port), '--admin-port', String(port + 2), ...flags];
    };
    return MooncakeMaster.#start('mooncake_emulator', all, ports);
  }

  /** Of its event stream. */
  get endpoint(): string {
    return `tcp://127.0.0.1:${this.ports.port}`;
  }

  /** Of its admin HTTP, as `--mooncake-master` takes it. */
  get adminUrl(): string {
    return `http://127.0.0.1:${this.ports.admin}`;
  }

  get log(): string {
    return this.#program.log;
  }

  ask(command: Command): Promise<unknown> {
    return this.#program.ask(command);
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }

  kill(): Promise<void> {
    return this.#program.kill();
  }

  /** Another process can take a free port first; then with others. */
  static async #start(
    name: string,
    flags: (port: number) => readonly string[],
    ports: MooncakePorts | undefined,
  ): Promise<MooncakeMaster> {
    for (let attempt = 1; ; attempt++) {
      const port = ports?.port ?? (await freePorts(3));
      const program = new MooncakeProgram(name, flags(port));
      try {
        await program.ready();
        return new MooncakeMaster(program, { port, rpc: port + 1, admin: port + 2 });
      } catch (error) {
        await program.kill();
        if (attempt === START_ATTEMPTS) throw error;
      }
    }
  }
}

/** A real client of a real master. */
export class MooncakeClient {
  readonly #program: MooncakeProgram;

  private constructor(program: MooncakeProgram) {
    this.#program = program;
  }

  /** `flags` as mooncake_client.py takes them: `--tenant`, `--segment-bytes`, `--disk`. */
  static async start(
    master: MooncakeMaster,
    flags: readonly string[] = [],
  ): Promise<MooncakeClient> {
    const own = ['--master-port', String(master.ports.rpc), ...flags];
    const program = new MooncakeProgram('mooncake_client', own);
    try {
      await program.ready();
    } catch (error) {
      await program.kill();
      throw error;
    }
    return new MooncakeClient(program);
  }

  ask(command: Command): Promise<unknown> {
    return this.#program.ask(command);
  }

  /** Its objects go with it. */
  stop(): Promise<void> {
    return this.#program.stop();
  }

  /** It dies with its objects, which the master finds out some time later. */
  kill(): Promise<void> {
    return this.#program.kill();
  }
}
