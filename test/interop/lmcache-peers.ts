/** LMCache of test/peers: what its MP servers report with, and its coordinator's own logic. */
import { type Command, CommandPeer } from './command-peer.ts';
import { canRun, newestOf } from './engines.ts';

const PROGRAM = 'lmcache_coordinator';

export function lmcacheAvailable(): boolean {
  return canRun(newestOf('lmcache'));
}

/** What one MP server tells, to the coordinator at `url`; its commands are those of class Server. */
export async function startServer(
  url: string,
  instanceId = 'mp-1',
  incarnation = 1000,
): Promise<CommandPeer> {
  const own = ['--url', url, '--instance-id', instanceId, '--incarnation', String(incarnation)];
  const program = new CommandPeer(PROGRAM, ['server', ...own]);
  await orKill(program, program.ready());
  return program;
}

/** One placement: instance (empty: a pool), medium, salt, model@hash, rank/group, bytes. */
export type Placement = readonly [string, string, string, string, string, number];

export class LmcacheCoordinator {
  readonly port: number;
  readonly #program: CommandPeer;

  private constructor(program: CommandPeer, port: number) {
    this.#program = program;
    this.port = port;
  }

  /** `port` of one that has ended: a restart, which knows nothing. */
  static async start(port = 0): Promise<LmcacheCoordinator> {
    const program = new CommandPeer(PROGRAM, ['coordinator', '--port', String(port)]);
    const { port: bound } = await orKill(program, program.ready());
    return new LmcacheCoordinator(program, Number(bound));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  ask(command: Command): Promise<unknown> {
    return this.#program.ask(command);
  }

  async held(): Promise<readonly Placement[]> {
    return (await this.ask({ op: 'held' })) as readonly Placement[];
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }

  kill(): Promise<void> {
    return this.#program.kill();
  }
}

async function orKill<Value>(program: CommandPeer, ready: Promise<Value>): Promise<Value> {
  try {
    return await ready;
  } catch (error) {
    await program.kill();
    throw error;
  }
}
