/**
 * One run: an engine's publisher, relays on its socket, and routers that collect.
 *
 * The relays get the very same stream, so that what they make of it can be compared; what a lossy hop
 * takes from one of them, it can ask the engine's replay socket for.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RankStatus, StatusSnapshot } from '../../src/status/status-source.ts';
import type { NatsServerProcess } from '../support/nats-server.ts';
import { NatsCollector } from '../support/plane-collector.ts';
import { RunProcess } from '../support/run-process.ts';
import { EngineDriver, type Published } from './engine-driver.ts';
import type { EngineVersion } from './engines.ts';
import { LossyHop } from './lossy-hop.ts';
import { Plane } from './plane.ts';
import { readTruth, type TruthBatch } from './truth.ts';

export type Compat = 'strict' | 'safe';

/** A subscription travels to the engine after the handshake that makes a relay ready. */
const SUBSCRIPTION_MS = 500;
const CATCH_UP_MS = 30_000;

export interface PlayOptions extends EngineVersion {
  /** Flags of the publisher, beyond version, port and truth. */
  readonly flags: readonly string[];
  readonly blockSize: number;
  readonly relays: readonly RelayPlan[];
}

/** One of the relays beside the engine. */
export interface RelayPlan {
  readonly name: string;
  readonly compat: Compat;
  /** Flags beyond those that every relay gets. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Share of the live batches that a hop between them drops; without it there is no hop. */
  readonly loss?: number;
}

/** One relay of each mode, straight on the engine's socket. */
export function relaysOf(compats: readonly Compat[]): RelayPlan[] {
  return compats.map((compat) => ({ name: compat, compat }));
}

export interface RelayOutcome {
  readonly name: string;
  /** Live batches that the hop has dropped. */
  readonly dropped: number;
  readonly plane: Plane;
  /** As the relay showed its rank after the last batch, still running. */
  readonly rank: RankStatus;
  readonly exitCode: number | null;
}

export interface PlayOutcome {
  readonly published: Published;
  readonly truth: readonly TruthBatch[];
  readonly relays: readonly RelayOutcome[];
  readonly seconds: number;
}

let relayCount = 0;

export function relayOf({ relays }: PlayOutcome, name: string): RelayOutcome {
  const relay = relays.find((one) => one.name === name);
  if (relay === undefined) throw new Error(`No relay was started as ${name}`);
  return relay;
}

export async function play(server: NatsServerProcess, options: PlayOptions): Promise<PlayOutcome> {
  const startMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-interop-'));
  const truthPath = join(folder, 'truth.jsonl');
  // Undone in reverse order, whatever happens: no process outlives its run.
  const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const routers = await NatsCollector.connect(server.url);
    cleanups.push(() => routers.close());
    const engine = await EngineDriver.start(options, ['--truth', truthPath, ...options.flags]);
    cleanups.push(() => engine.stop());
    const relays: PlayedRelay[] = [];
    cleanups.push(() => Promise.all(relays.map((relay) => relay.stop())));
    for (const plan of options.relays) {
      relays.push(await PlayedRelay.start(server, engine, plan, options));
    }
    await Promise.all(relays.map((relay) => relay.ready()));
    await sleep(SUBSCRIPTION_MS);

    engine.go();
    const published = await engine.published();
    const outcomes = await Promise.all(relays.map((relay) => relay.end(published, routers)));
    const seconds = (performance.now() - startMs) / 1000;
    return { published, truth: readTruth(truthPath), relays: outcomes, seconds };
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

class PlayedRelay {
  readonly #name: string;
  readonly #hop: LossyHop | null;
  readonly #subject: string;
  readonly #process: RunProcess;

  private constructor(
    server: NatsServerProcess,
    engineEndpoint: string,
    hop: LossyHop | null,
    { name, compat, flags: ownFlags }: RelayPlan,
    { engine: engineName, blockSize }: PlayOptions,
  ) {
    const namespace = `interop-${process.pid}-${++relayCount}`;
    this.#name = name;
    this.#hop = hop;
    this.#subject = `namespace.${namespace}.component.backend.endpoint.generate.kv-events`;
    const flags = {
      '--compat': compat,
      '--engine': engineName,
      '--engine-endpoint': engineEndpoint,
      '--block-size': String(blockSize),
      '--event-plane': 'nats',
      '--nats-server': server.url,
      '--namespace': namespace,
      '--http': '127.0.0.1:0',
      ...ownFlags,
    };
    this.#process = new RunProcess(['run', ...Object.entries(flags).flat()]);
  }

  static async start(
    server: NatsServerProcess,
    engine: EngineDriver,
    plan: RelayPlan,
    options: PlayOptions,
  ): Promise<PlayedRelay> {
    const { name, loss } = plan;
    const hop = loss === undefined ? null : await LossyHop.start(engine.endpoint, loss, name);
    const flags =
      hop === null ? plan.flags : { '--replay-endpoint': engine.replayEndpoint, ...plan.flags };
    const endpoint = hop?.endpoint ?? engine.endpoint;
    return new PlayedRelay(server, endpoint, hop, { ...plan, flags: flags ?? {} }, options);
  }

  async ready(): Promise<void> {
    await this.#process.ready();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
    await this.#hop?.stop();
  }

  /** Waits until it has read the last batch, ends it, and gives what came of it. */
  async end({ last_seq }: Published, routers: NatsCollector): Promise<RelayOutcome> {
    const deadlineMs = performance.now() + CATCH_UP_MS;
    let rank = await this.#rank();
    while (rank.engine.emitted_seq !== String(last_seq)) {
      if (performance.now() > deadlineMs) {
        const { emitted_seq: have } = rank.engine;
        throw new Error(`${this.#name}: got batch ${have}, the engine's last one is ${last_seq}`);
      }
      await sleep(20);
      rank = await this.#rank();
    }
    const exitCode = await this.#process.stop();
    await routers.settle();
    const plane = new Plane(routers.on(this.#subject));
    return { name: this.#name, dropped: this.#hop?.dropped ?? 0, plane, rank, exitCode };
  }

  async #rank(): Promise<RankStatus> {
    const response = await fetch(`${this.#process.httpUrl}/api/status`);
    const { ranks } = (await response.json()) as StatusSnapshot;
    return ranks[0] as RankStatus;
  }
}
