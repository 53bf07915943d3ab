/** The KV event stream of a real LMCache server, whose caches are what a test makes them. */
import { onTestFinished } from 'vitest';
import { freePorts } from '../support/free-ports.ts';
import { CommandPeer } from './command-peer.ts';
import { canRun, newestOf } from './engines.ts';

const START_ATTEMPTS = 3;

/** With KVRELAY_REQUIRE_ALL=1 a missing one throws. */
export function lmcacheServerAvailable(): boolean {
  return canRun(newestOf('lmcache'));
}

/** A chunk as it was told to the server. */
export interface ServerChunk {
  readonly model: string;
  /** Hex. */
  readonly hash: string;
  readonly parent: string | null;
  readonly tokens: readonly number[];
}

export class LmcacheServer {
  readonly port: number;
  /** What its L1 holds, as `MODEL HASH`. */
  readonly held: Set<string> = new Set();
  readonly #peer: CommandPeer;

  private constructor(peer: CommandPeer, port: number) {
    this.#peer = peer;
    this.port = port;
  }

  /** `flags` as lmcache_server.py takes them. It ends with the test. */
  static async start(...flags: string[]): Promise<LmcacheServer> {
    for (let attempt = 1; ; attempt++) {
      const port = await freePorts(1);
      const peer = new CommandPeer('lmcache_server', ['--port', `${port}`, ...flags]);
      try {
        await peer.ready();
        onTestFinished(() => peer.stop());
        return new LmcacheServer(peer, port);
      } catch (error) {
        await peer.kill();
        if (attempt === START_ATTEMPTS) throw error;
      }
    }
  }

  get endpoint(): string {
    return `tcp://127.0.0.1:${this.port}`;
  }

  async store(...chunks: readonly ServerChunk[]): Promise<void> {
    for (const { model, hash, parent, tokens } of chunks) {
      this.held.add(`${model} ${hash}`);
      const fields = { hashes: [hash], tokens: [tokens], parents: [parent], model };
      await this.#peer.ask({ op: 'store', ...fields });
    }
  }

  async evict(model: string, ...hashes: readonly string[]): Promise<void> {
    for (const hash of hashes) this.held.delete(`${model} ${hash}`);
    await this.#peer.ask({ op: 'evict', model, hashes });
  }

  /** Evictions that its bus has no room for: a loss. */
  async overflow(model: string, ...evicted: readonly string[]): Promise<void> {
    for (const hash of evicted) this.held.delete(`${model} ${hash}`);
    await this.#peer.ask({ op: 'overflow', model, evicted });
  }

  async restart(): Promise<void> {
    this.held.clear();
    await this.#peer.ask({ op: 'restart' });
  }

  /** Ends the subscriptions of instances that were silent for so long. */
  async reap(silentSeconds: number): Promise<void> {
    await this.#peer.ask({ op: 'reap', silent_seconds: silentSeconds });
  }

  /** Instance ids of all pings so far. */
  async pings(): Promise<readonly number[]> {
    return (await this.#peer.ask({ op: 'pings' })) as readonly number[];
  }

  async subscribers(): Promise<number> {
    const status = (await this.#peer.ask({ op: 'status' })) as { readonly subscribers: number };
    return status.subscribers;
  }
}
