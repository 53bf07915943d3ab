/**
 * A real engine that goes on all the while, a stock worker, a relay in a process of its own and a stock
 * router: at the end the router holds what the relay says, and the relay what the engine did.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { FaultProcess } from '../support/fault-process.ts';
import { type DynamoPeer, hasDynamo, type PeerProgram } from './dynamo-peers.ts';
import { EngineDriver } from './engine-driver.ts';
import { canRun, newestOf } from './engines.ts';
import { answersOf, expectSame, startPeer, until } from './router-trial.ts';
import { readTruth, Truth } from './truth.ts';

const VLLM = newestOf('vllm');
const BATCHES_PER_SECOND = 50;
const BLOCK_SIZE = '16';

export function canRunTrials(): boolean {
  return hasDynamo() && canRun(VLLM);
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-trial-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface EngineTrialOptions {
  /** Flags of discovery and planes, which all share. */
  readonly place: readonly string[];
  /** How long the engine goes on. */
  readonly seconds: number;
  readonly relayFlags?: readonly string[];
  readonly relayEnv?: Record<string, string>;
  readonly peersEnv?: Record<string, string>;
}

export class EngineTrial {
  readonly #options: EngineTrialOptions;
  readonly #driver: EngineDriver;
  readonly #truthPath: string;

  private constructor(options: EngineTrialOptions, driver: EngineDriver, truthPath: string) {
    this.#options = options;
    this.#driver = driver;
    this.#truthPath = truthPath;
  }

  /** The engine alone; it waits for `begin()`. */
  static async start(options: EngineTrialOptions): Promise<EngineTrial> {
    const truthPath = join(temporaryFolder(), 'truth.jsonl');
    const flags = {
      '--batches': String(options.seconds * BATCHES_PER_SECOND),
      '--rate': String(BATCHES_PER_SECOND),
      '--capacity': '500',
      '--p-clear': '0',
      '--block-size': BLOCK_SIZE,
      '--truth': truthPath,
    };
    const driver = await EngineDriver.start(VLLM, Object.entries(flags).flat());
    onTestFinished(() => driver.stop());
    return new EngineTrial(options, driver, truthPath);
  }

  begin(): void {
    this.#driver.go();
  }

  startWorker(): Promise<DynamoPeer> {
    return this.#startPeer('dynamo_worker');
  }

  startRelay(): Promise<FaultProcess> {
    const { place, relayFlags = [], relayEnv } = this.#options;
    const { endpoint, replayEndpoint } = this.#driver;
    const engine = ['--engine-endpoint', endpoint, '--replay-endpoint', replayEndpoint];
    const flags = [...place, ...relayFlags, '--block-size', BLOCK_SIZE, ...engine];
    return FaultProcess.ready(flags, relayEnv);
  }

  /** Resolves once it has asked the relay for all that it holds. */
  async startRouter(relay: FaultProcess): Promise<DynamoPeer> {
    const dumps = await answersOf(relay, 'tree_dump');
    const router = await this.#startPeer('dynamo_router');
    await until(async () => (await answersOf(relay, 'tree_dump')) > dumps);
    return router;
  }

  /** Waits until the engine is through, and all three hold the same. */
  async expectSame(router: DynamoPeer, relay: FaultProcess): Promise<void> {
    const { last_seq } = await this.#driver.published();
    await relay.passed(last_seq);
    expect((await expectSame(router, relay)).length).toBeGreaterThan(200);
    expect(await relay.blockNames()).toEqual(new Truth(readTruth(this.#truthPath)).live());
  }

  #startPeer(program: PeerProgram): Promise<DynamoPeer> {
    const { place, peersEnv } = this.#options;
    return startPeer(program, [...place, `--block-size=${BLOCK_SIZE}`], peersEnv);
  }
}
