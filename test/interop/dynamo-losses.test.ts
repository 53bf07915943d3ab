/**
 * A stock router behind an event plane that loses 5 % of a relay's messages, at random. Losses beside no
 * answer are healed by the router's queries; for those beside an answer, of which a router never asks
 * again, the relay announces its source anew.
 */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BusyEngine } from './busy-engine.ts';
import { type DynamoPeer, hasDynamo } from './dynamo-peers.ts';
import { EngineDriver } from './engine-driver.ts';
import { canRun, newestOf } from './engines.ts';
import { Loss } from './loss.ts';
import { startLossyTrial } from './lossy-plane.ts';
import {
  answersOf,
  blocksOf,
  differenceOf,
  expectSame,
  pause,
  type RelayHere,
  resyncsOf,
  until,
} from './router-trial.ts';
import { SparedAnswers } from './spared-answers.ts';

const VLLM = newestOf('vllm');
const LOSS = 0.05;

describe.skipIf(!hasDynamo() || !canRun(VLLM)).each(['broker', 'nats'] as const)(
  'real traffic, 5 % of the messages lost on %s',
  (plane) => {
    test('and none of them beside an answer: queries alone make the router equal', async () => {
      const stream = ['--batches', '320', '--rate', '40', '--capacity', '300', '--p-clear', '0'];
      const driver = await EngineDriver.start(VLLM, [...stream, '--block-size', '16']);
      onTestFinished(() => driver.stop());
      const spared = new SparedAnswers(0.07, plane, 300);
      const engine = { endpoint: driver.endpoint, blockSize: 16 };
      const { relay, startRouter } = await startLossyTrial(plane, spared.drops, engine);
      await relay.ready();
      const router = await startRouter();
      await until(async () => (await answersOf(relay, 'tree_dump')) === 1);
      spared.watch(relay);
      driver.go();
      await driver.published();
      const { length: blocks } = await expectSame(router, relay);
      const { dropped, passed } = spared.loss;
      const queries = await answersOf(relay, 'events');
      console.log(`${plane}: ${dropped} of ${dropped + passed} messages lost, ${queries} queries`);
      expect(blocks).toBeGreaterThan(100);
      expect(dropped / (dropped + passed)).toBeGreaterThan(LOSS / 2);
      expect(queries).toBeGreaterThan(dropped / 4);
      expect(await answersOf(relay, 'tree_dump')).toBe(1);
      expect(await resyncsOf(relay)).toBe(0);
    });
  },
);

/** Blocks of an answer that takes a router some time. */
const HELD_BLOCKS = 60_000;
/**
 * Messages of the ring: what is older is answered by a dump, which must not happen once more: more than
 * wait for an answer at a time.
 */
const KEPT_MESSAGES = 400;
/** No query for so long, and the source is announced anew if it has to be. */
const QUIET_MS = 6000;

/** Which messages are lost: 5 % at random, all of them, or each second one. */
class ManyLosses {
  mode: 'none' | 'random' | 'all' | 'every second' = 'none';
  readonly loss = new Loss(LOSS, 'everywhere');
  inARow = 0;
  #besideAnswer = 0;

  readonly drops = (): boolean => {
    if (this.mode === 'random') return this.loss.takesNext();
    if (this.mode === 'every second') return ++this.#besideAnswer % 2 === 0;
    if (this.mode === 'all') this.inARow++;
    return this.mode === 'all';
  };
}

/** Loses messages while a dump for the router is under way: fixed, and not yet with it. */
async function loseBesideDump(
  losses: ManyLosses,
  relay: RelayHere,
  router: DynamoPeer,
): Promise<void> {
  for (let isLost = false; !isLost; ) {
    const dumps = await answersOf(relay, 'tree_dump');
    const lostUntil = losses.inARow + KEPT_MESSAGES + 50;
    losses.mode = 'all';
    await until(() => losses.inARow > lostUntil);
    losses.mode = 'none';
    while (relay.answersInFlight === 0) await setImmediate();
    // It can take neither the dump nor what is published beside it, until it has missed some of that.
    router.freeze();
    losses.mode = 'every second';
    await pause(300);
    // Not so where it had the dump already.
    isLost = relay.answersInFlight > 0 && (await answersOf(relay, 'tree_dump')) === dumps + 1;
    losses.mode = 'none';
    router.thaw();
    // What has passed is with it before the rest of the dump, which this process still has to write.
    stall(300);
    await calm(relay);
  }
}

/** This process does nothing at all. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Nothing waits for a while, and no router asks. */
async function calm(relay: RelayHere): Promise<void> {
  let busyAtMs = performance.now();
  await until(() => {
    const held = relay.worker.status().ranks[0]?.queues.held ?? 0;
    if (held > 0 || relay.answersInFlight > 0) busyAtMs = performance.now();
    return performance.now() - busyAtMs > 300;
  });
}

describe.skipIf(!hasDynamo())('a busy source, 5 % of the messages lost', () => {
  test.each([
    ['broker', 'output waits for it', 30],
    ['nats', 'output waits for it', 30],
    ['broker', 'nothing has to wait', 1],
  ] as const)(
    'and some beside a dump, on %s, where %s: one re-sync makes the router equal',
    async (plane, _, events) => {
      const losses = new ManyLosses();
      const engine = await BusyEngine.start();
      const { endpoint } = engine.stub;
      const flags = [`--resync-quiet-ms=${QUIET_MS}`, `--event-buffer=${KEPT_MESSAGES * events}`];
      const one = { endpoint, blockSize: 4 };
      const { relay, startRouter } = await startLossyTrial(plane, losses.drops, one, flags);
      await relay.ready();
      await engine.fill(HELD_BLOCKS);
      const rank = () => relay.worker.status().ranks[0];
      await until(() => rank()?.blocks.device === HELD_BLOCKS);
      const router = await startRouter();
      await until(async () => (await answersOf(relay, 'tree_dump')) === 1);
      const before = rank()?.publisher_id;

      engine.begin(events);
      losses.mode = 'random';
      await pause(1000);
      losses.mode = 'none';
      await calm(relay);
      await loseBesideDump(losses, relay, router);
      await engine.end();
      await calm(relay);

      // The queries are over, and have not helped.
      const known = await blocksOf(router);
      expect(await resyncsOf(relay)).toBe(0);
      expect((await differenceOf(known, relay)).missing).not.toEqual([]);
      const held = await relay.metric('kvrelay_output_hold_seconds_count');
      expect(held > 0).toBe(events > 1);

      await until(async () => (await resyncsOf(relay)) > 0);
      const { length: blocks } = await expectSame(router, relay);
      expect(blocks).toBeGreaterThan(HELD_BLOCKS);
      expect(rank()?.publisher_id).not.toBe(before);
      await pause(QUIET_MS);
      expect(await expectSame(router, relay)).toHaveLength(blocks);
      expect(await resyncsOf(relay)).toBe(1);
    },
  );
});
