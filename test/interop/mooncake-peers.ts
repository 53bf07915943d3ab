/**
 * Mooncake Store of test/peers: the real master and real clients, and an emulated store for what they cannot be
 * made to do. Each is a process that does what it is told, one command after the other.
 *
 * Ends     each with its standard input, which closes with the test process too; a master dies with its program.
 * Throws   when one ends early or is late, or a command fails, with the last of what it wrote.
 */
import { freePorts } from '../support/free-ports.ts';
import { type Command, CommandPeer } from './command-peer.ts';
import { canRun, newestOf, PYTHON } from './engines.ts';

const START_ATTEMPTS = 3;

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

/** A master or an emulated store. */
export class MooncakeMaster {
  readonly ports: MooncakePorts;
  readonly #program: CommandPeer;

  private constructor(program: CommandPeer, ports: MooncakePorts) {
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
      const program = new CommandPeer(name, flags(port));
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
  readonly #program: CommandPeer;

  private constructor(program: CommandPeer) {
    this.#program = program;
  }

  /** `flags` as mooncake_client.py takes them: `--tenant`, `--segment-bytes`, `--disk`. */
  static async start(
    master: MooncakeMaster,
    flags: readonly string[] = [],
  ): Promise<MooncakeClient> {
    const own = ['--master-port', String(master.ports.rpc), ...flags];
    const program = new CommandPeer('mooncake_client', own);
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
