/**
 * Live batches of real engines that are lost on the way, and the engines' own replay sockets.
 *
 * A hop drops by seed what the engine sends live; the relay asks the engine itself. Each run has relays
 * behind hops of every loss, so that all of them see the same engine.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NatsServerProcess, startNatsServer } from '../support/nats-server.ts';
import { changeDifference, countingBreak, liveDifference, storeDifference } from './compare.ts';
import { canRun, type EngineVersion, newestOf } from './engines.ts';
import { type PlayOutcome, play, type RelayPlan, relayOf } from './play.ts';
import { Truth } from './truth.ts';

const MIN_REMOVALS = 1000;
const LOSSES = [0.01, 0.1, 0.5];
const SAFE = { compat: 'safe' } as const;

interface Engine extends EngineVersion {
  readonly name: string;
  readonly flags: readonly string[];
}

function engine(name: 'vllm' | 'sglang', flags: Readonly<Record<string, string | number>>): Engine {
  const length = { '--batches': 2500, '--events-per-batch': 2, '--seed': 1, '--block-size': 16 };
  const all = Object.entries({ ...length, ...flags }).flat();
  return { ...newestOf(name), name: JSON.stringify(flags), flags: all.map(String) };
}

const WHOLE: readonly Engine[] = [60, 300].flatMap((capacity) => [
  engine('vllm', { '--source': 'manager', '--capacity': capacity }),
  engine('sglang', { '--source': 'radix', '--capacity': capacity }),
]);

/** A run of one engine with its relays; started once for all tests of a describe block. */
function useRun(engineToRun: Engine, relays: readonly RelayPlan[]): () => [PlayOutcome, Truth] {
  let server: NatsServerProcess;
  let outcome: PlayOutcome;
  let truth: Truth;
  beforeAll(async () => {
    if (!canRun(engineToRun)) return;
    server = await startNatsServer();
    outcome = await play(server, { ...engineToRun, blockSize: 16, relays });
    truth = new Truth(outcome.truth);
    for (const { name, dropped, rank } of outcome.relays) {
      const { lost_batches: lost } = rank.counters;
      console.log(`${engineToRun.engine} ${name}: ${dropped} dropped, ${lost} lost for good`);
    }
  });
  afterAll(() => server?.stop());
  return () => [outcome, truth];
}

describe.each(WHOLE)('$engine $version $name', (one) => {
  const plans = LOSSES.map((loss) => ({ name: `${loss * 100} % lost`, loss, ...SAFE }));
  const run = useRun(one, plans);

  test.skipIf(!canRun(one))('the engine removes often enough to tell', () => {
    expect(run()[1].removals).toBeGreaterThanOrEqual(MIN_REMOVALS);
  });

  describe.skipIf(!canRun(one)).each(plans)('$name', ({ name, loss }) => {
    test('every batch that was dropped is replayed, in its place', () => {
      const [outcome, truth] = run();
      const { dropped, plane, rank, exitCode } = relayOf(outcome, name);
      expect(dropped).toBeGreaterThan((outcome.published.batches * loss) / 2);
      expect(rank.counters.lost_batches).toBe(0);
      expect(rank.degraded.map(({ code }) => code)).toEqual([]);
      expect(liveDifference(plane, truth)).toEqual({ missing: [], wrong: [] });
      expect(changeDifference(plane, truth)).toBe('');
      expect(storeDifference(plane, truth)).toBe('');
      expect(countingBreak(plane.eventIds, 1)).toBe('');
      expect(exitCode).toBe(0);
    });
  });
});

describe('an engine that keeps too little for a replay', () => {
  const EVENTS_A_BATCH = 3;
  const one = engine('vllm', {
    '--batches': 4000,
    '--events-per-batch': EVENTS_A_BATCH,
    '--buffer-steps': 5,
    '--capacity': 200,
  });
  const plans: readonly RelayPlan[] = [
    { name: 'replay', loss: 0.5, ...SAFE },
    { name: 'clear', loss: 0.5, ...SAFE, flags: { '--on-engine-gap': 'clear' } },
    { name: 'count', loss: 0.1, ...SAFE, flags: { '--on-engine-gap': 'count' } },
  ];
  const run = useRun(one, plans);

  test.skipIf(!canRun(one)).each(plans)('$name: counts exactly what is lost', ({ name }) => {
    const [{ truth: batches, ...outcome }] = run();
    const { rank, dropped } = relayOf({ truth: batches, ...outcome }, name);
    for (const { events } of batches) expect(events).toHaveLength(EVENTS_A_BATCH);
    const passedOn = rank.counters.received / EVENTS_A_BATCH;
    expect(rank.counters.lost_batches).toBe(batches.length - passedOn);
    expect(rank.counters.lost_batches).toBeGreaterThan(0);
    expect(rank.counters.lost_batches).toBeLessThanOrEqual(dropped);
    const codes = rank.degraded.map(({ code }) => code);
    expect(codes).toEqual(
      { replay: ['recovered_with_loss'], clear: [], count: ['engine_gap'] }[name],
    );
  });

  test.skipIf(!canRun(one))('clear: a router believes in no block that the engine has not', () => {
    const [outcome, truth] = run();
    expect(liveDifference(relayOf(outcome, 'clear').plane, truth).wrong).toEqual([]);
  });
});

describe('a number that the engine itself leaves out', () => {
  const one = engine('vllm', { '--gap-at': 700, '--capacity': 200 });
  const plans: readonly RelayPlan[] = [
    { name: 'a hop that drops', loss: 0.1, ...SAFE },
    { name: 'a hop that drops nothing', loss: 0, ...SAFE },
  ];
  const run = useRun(one, plans);

  test.skipIf(!canRun(one)).each(plans)('$name: is one lost batch, no more', ({ name }) => {
    const [outcome, truth] = run();
    const { plane, rank } = relayOf(outcome, name);
    expect(rank.counters.lost_batches).toBe(1);
    expect(rank.degraded.map(({ code }) => code)).toEqual(
      truth.clears > 0 ? [] : ['recovered_with_loss'],
    );
    expect(liveDifference(plane, truth)).toEqual({ missing: [], wrong: [] });
    expect(changeDifference(plane, truth)).toBe('');
  });
});
