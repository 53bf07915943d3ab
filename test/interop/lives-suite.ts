/**
 * Real engines that are killed and started again on the same ports, and a relay that comes late.
 *
 * Each life has a seed of its own, so that no block of one life is a block of another: what a router
 * holds tells which life it believes in.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RankStatus, StatusSnapshot } from '../../src/status/status-source.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { eventually, NatsCollector } from '../support/plane-collector.ts';
import { RunProcess } from '../support/run-process.ts';
import { liveDifference } from './compare.ts';
import { EngineDriver, type EnginePorts } from './engine-driver.ts';
import { canRun, type EngineVersion } from './engines.ts';
import { Plane } from './plane.ts';
import { readTruth, Truth } from './truth.ts';

const LIVES = 21;
/** Twenty Python programs start, one after the other. */
const KILLS_TIMEOUT_MS = 300_000;

/** A batch has at most so many changes. */
const MAX_UNWRITTEN_CHANGES = 30;

/** A killed process's ports are free at once; a life is short, and cut off anywhere. */
const MIN_LIFE_MS = 150;
const SUBJECT = 'namespace.lives.component.backend.endpoint.generate.kv-events';

/** Clears would hide which clear comes from a restart. */
const FLAGS = '--capacity 200 --events-per-batch 3 --block-size 16 --p-clear 0'.split(' ');

function truthFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-lives-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function startRelay(engine: EngineVersion, driver: EngineDriver): Promise<Relay> {
  const server = await startNatsServer();
  onTestFinished(() => server.stop());
  const router = await NatsCollector.connect(server.url);
  onTestFinished(() => router.close());
  const flags = {
    '--engine': engine.engine,
    '--engine-endpoint': driver.endpoint,
    '--replay-endpoint': driver.replayEndpoint,
    '--block-size': '16',
    '--event-plane': 'nats',
    '--nats-server': server.url,
    '--namespace': 'lives',
    '--http': '127.0.0.1:0',
  };
  const process = new RunProcess(['run', ...Object.entries(flags).flat()]);
  onTestFinished(async () => {
    await process.stop();
  });
  await process.ready();
  return new Relay(process, router);
}

class Relay {
  readonly #process: RunProcess;
  readonly #router: NatsCollector;

  constructor(process: RunProcess, router: NatsCollector) {
    this.#process = process;
    this.#router = router;
  }

  async rank(): Promise<RankStatus> {
    const response = await fetch(`${this.#process.httpUrl}/api/status`);
    return ((await response.json()) as StatusSnapshot).ranks[0] as RankStatus;
  }

  /** Waits until the batch with this number has been passed on. */
  async reached(sequence: number): Promise<RankStatus> {
    const deadlineMs = performance.now() + 30_000;
    for (;;) {
      const rank = await this.rank();
      if (rank.engine.emitted_seq === String(sequence)) return rank;
      if (performance.now() > deadlineMs) {
        throw new Error(`At ${rank.engine.emitted_seq} of ${sequence}`);
      }
      await sleep(20);
    }
  }

  /** What a router has got so far. */
  async plane(): Promise<Plane> {
    await this.#router.settle();
    return new Plane(this.#router.on(SUBJECT));
  }

  get messageCount(): number {
    return this.#router.on(SUBJECT).length;
  }
}

/** The changes between two clears; the engine itself never clears in these streams. */
function segments(changes: readonly string[]): string[][] {
  const found: string[][] = [[]];
  for (const change of changes) {
    if (change === 'clear') found.push([]);
    else found.at(-1)?.push(change);
  }
  return found;
}

export function describeLives(engine: EngineVersion): void {
  describe.skipIf(!canRun(engine))(`${engine.engine} ${engine.version}`, () => {
    test(
      'R1, R3: 20 kills under load: no block of an old life after the first batch of a new one',
      async () => {
        const folder = truthFolder();
        const truthOf = (life: number): string => join(folder, `${life}.jsonl`);
        const flagsOf = (life: number): string[] => {
          const length =
            life === LIVES ? ['--batches', '300'] : ['--batches', '0', '--rate', '2000'];
          return [...FLAGS, ...length, '--seed', String(life), '--truth', truthOf(life)];
        };
        let driver = await EngineDriver.start(engine, flagsOf(1));
        onTestFinished(() => driver.stop());
        const ports: EnginePorts = driver.ports;
        const relay = await startRelay(engine, driver);
        for (let life = 1; life < LIVES; life++) {
          const before = relay.messageCount;
          driver.go();
          await eventually(() => relay.messageCount > before + 20, 20_000);
          await sleep(MIN_LIFE_MS * Math.random());
          await driver.kill();
          driver = await EngineDriver.start(engine, flagsOf(life + 1), ports);
        }
        driver.go();
        const { last_seq } = await driver.published();
        const rank = await relay.reached(last_seq);

        const plane = await relay.plane();
        console.log(
          `${engine.engine}: ${LIVES - 1} kills, ${plane.eventIds.length} events, batches that no engine could replay any more: ${rank.counters.lost_batches}`,
        );
        const truths = Array.from(
          { length: LIVES },
          (_, at) => new Truth(readTruth(truthOf(at + 1))),
        );
        const lives = segments(plane.changes);
        expect(truths.map(({ clears }) => clears)).toEqual(new Array(LIVES).fill(0));
        expect(lives).toHaveLength(LIVES);
        for (const [at, changes] of lives.entries()) {
          const own = new Set(truths[at]?.changes);
          expect(changes.length, `life ${at + 1}`).toBeGreaterThan(10);
          // A kill takes the truth of a batch that had just left.
          const foreign = changes.filter((change) => !own.has(change));
          expect(foreign.length, `life ${at + 1}`).toBeLessThan(MAX_UNWRITTEN_CHANGES);
          expect(changes.slice(0, 10).filter((change) => !own.has(change))).toEqual([]);
        }
        expect(liveDifference(plane, truths.at(-1) as Truth)).toEqual({ missing: [], wrong: [] });
        expect(rank.counters.engine_restarts).toBe(LIVES - 1);
        expect(rank.degraded).toEqual([]);
      },
      KILLS_TIMEOUT_MS,
    );

    test('G9: a relay that joins a full cache late learns all of it', async () => {
      const folder = truthFolder();
      const truthPath = join(folder, 'truth.jsonl');
      const flags = [...FLAGS, '--batches', '2500', '--seed', '3', '--truth', truthPath];
      const driver = await EngineDriver.start(engine, flags);
      onTestFinished(() => driver.stop());
      driver.go();
      const { last_seq } = await driver.published();
      const relay = await startRelay(engine, driver);
      const rank = await relay.reached(last_seq);
      const truth = new Truth(readTruth(truthPath));
      expect(truth.live().length).toBeGreaterThan(100);
      expect(liveDifference(await relay.plane(), truth)).toEqual({ missing: [], wrong: [] });
      expect(rank.counters.lost_batches).toBe(0);
      expect(rank.degraded).toEqual([]);
    });
  });
}
