/**
 * Deterministic simulation: engines, their replay buffers, networks, the plane, discovery and routers played
 * around the real reader, sequencer, stages, index, hold, outbox, recovery service and presence, each history
 * drawn from its seed. What must hold of them is in verdict.ts and router-verdict.ts, what goes wrong in
 * faults.ts and router-faults.ts.
 *
 * CI plays 2,000 seeds, the same each time, and `npm run test:faults` ten times as many. KVRELAY_SEED
 * begins with another one, KVRELAY_RUNS plays more or fewer:
 *
 *     KVRELAY_SEED=100000 KVRELAY_RUNS=50000 npx vitest run test/simulation
 */
import { describe, expect, test, vi } from 'vitest';
import { scaled } from '../support/whole.ts';
import { FOUND } from './found-seeds.ts';
import { failureOf } from './shrink.ts';

// The one part of the engine's side that owns sockets: its stand-in has the same stream behind it.
vi.mock('../../src/listener/engine-listener.ts', () => import('./simulated-listener.ts'));
// Routers and the recovery service meet here.
vi.mock('node:net', async (importOriginal) => {
  const { connect, createServer } = await import('./simulated-net.ts');
  return { ...(await importOriginal<typeof import('node:net')>()), connect, createServer };
});

const firstSeed = Number(process.env.KVRELAY_SEED ?? 1);
const seedCount = Number(process.env.KVRELAY_RUNS ?? scaled(2000, 20_000));

/** One test a portion, so that a long run shows how far it is. */
const PORTION = 500;
/** A broken build would fail them all: the first few say enough. */
const MAX_FAILURES = 3;

const portions = Array.from({ length: Math.ceil(seedCount / PORTION) }, (_, index) => {
  const first = firstSeed + index * PORTION;
  return { first, last: Math.min(first + PORTION, firstSeed + seedCount) - 1 };
});

describe('histories', () => {
  test.each(portions)('$first to $last', { timeout: 600_000 }, async ({ first, last }) => {
    const failures: string[] = [];
    for (let seed = first; seed <= last && failures.length < MAX_FAILURES; seed++) {
      const failure = await failureOf(seed);
      if (failure !== null) failures.push(failure);
    }
    expect(failures.join('\n\n')).toBe('');
  });

  test.each(FOUND)('%i, which found: %s', async (seed) => {
    expect(await failureOf(seed)).toBeNull();
  });
});
