/**
 * Parts of trials with a stock worker, a relay and a stock router, each in a place of its own. What a
 * router ends with is what the relay says it holds, block for block.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { eventually } from '../support/plane-collector.ts';
import { READY_MS, RelayPages } from '../support/relay-pages.ts';
import { type LiveDifference, liveDifference } from './compare.ts';
import { DynamoPeer, type PeerProgram } from './dynamo-peers.ts';
import type { Place } from './places.ts';

const SAME_MS = 30_000;
const LOOK_MS = 100;

const logger = createLogger({ level: 'silent', format: 'json' });

/** Flag of a router that says what it holds whenever it finds that changed. */
export const SAYS_CHANGES = '--interval=0.05';

/** A peer that ends with the test; a router says what it holds when it is asked, unless told otherwise. */
export async function startPeer(
  program: PeerProgram,
  flags: readonly string[],
  env: Record<string, string> = {},
): Promise<DynamoPeer> {
  const asked = program === 'dynamo_router' ? ['--interval=0'] : [];
  const peer = await DynamoPeer.start(program, [...asked, ...flags], env);
  onTestFinished(() => peer.stop());
  return peer;
}

/** A relay in the test's own process, so that a test sees its state at once. */
export class RelayHere extends RelayPages {
  readonly worker: Worker;

  private constructor(worker: Worker) {
    super();
    this.worker = worker;
  }

  static async start(flags: readonly string[], env = {}): Promise<RelayHere> {
    const config = loadConfig({
      argv: ['--http=127.0.0.1:0', ...flags],
      env,
      readFile: (path) => readFileSync(path, 'utf8'),
      random: randomBytes,
    });
    const worker = createWorker(config, { logger });
    onTestFinished(() => worker.stop());
    await worker.start();
    return new RelayHere(worker);
  }

  /** The engine may come later. */
  static startIn(
    { shared, relayOnly }: Place,
    engineEndpoint: string,
    flags: readonly string[] = [],
  ): Promise<RelayHere> {
    const engine = `--engine-endpoint=${engineEndpoint}`;
    return RelayHere.start([engine, ...shared, ...relayOnly, ...flags]);
  }

  get httpUrl(): string {
    return this.worker.httpUrl ?? '';
  }

  async ready(): Promise<void> {
    if (await eventually(() => this.worker.ready().ready, READY_MS)) return;
    throw new Error(`not ready: ${this.worker.ready().waitingFor.join()}`);
  }

  /** Answers on their way to a router. */
  get answersInFlight(): number {
    return this.worker.status().recovery?.answers_in_flight ?? 0;
  }
}

/** What a router holds, as `RelayPages.blocks()` says it of a relay. */
export async function blocksOf(router: DynamoPeer): Promise<string[]> {
  const rows = await router.askIndex();
  return rows.map((row) => row.map((cell) => String(cell ?? '')).join(' ')).sort();
}

/** What blocks of a router are, held against what the relay says. */
export async function differenceOf(
  known: readonly string[],
  relay: RelayPages,
): Promise<LiveDifference> {
  const held = await relay.blocks();
  return liveDifference({ live: () => known }, { live: () => held });
}

/**
 * Waits until both hold the same; resolves with that, as `blocksOf()` says it. What an engine has not sent
 * yet is the caller's to wait for.
 */
export async function expectSame(
  router: DynamoPeer,
  relay: RelayPages,
  timeoutMs: number = SAME_MS,
): Promise<string[]> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const known = await blocksOf(router);
    const difference = await differenceOf(known, relay);
    const isSame = difference.missing.length + difference.wrong.length === 0;
    if (isSame || performance.now() > deadlineMs) {
      expect(difference).toEqual({ missing: [], wrong: [] });
      return known;
    }
    await pause(LOOK_MS);
  }
}

/** How many queries got this answer; of one rank where it is given. */
export function answersOf(
  relay: RelayPages,
  answer: 'events' | 'tree_dump',
  dpRank?: number,
): Promise<number> {
  const rank = dpRank === undefined ? {} : { dp_rank: String(dpRank) };
  return relay.metric('kvrelay_recovery_queries_total', { answer, ...rank });
}

export function resyncsOf(relay: RelayPages): Promise<number> {
  return relay.metric('kvrelay_source_resyncs_total');
}

/** Resolves once `condition` holds, which may have to ask the relay; fails where it does not come to. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number = SAME_MS,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`still not so: ${String(condition)}`);
    await pause(20);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
