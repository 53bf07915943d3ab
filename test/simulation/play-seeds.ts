/**
 * Deterministic simulation: engines, their replay buffers, networks, the plane, discovery and routers played
 * around the real reader, sequencer, stages, index, hold, outbox, recovery service and presence, each history
 * drawn from its seed. What must hold of them is in verdict.ts and router-verdict.ts, what goes wrong in
 * faults.ts and router-faults.ts.
 *
 * CI plays 2,000 seeds, the same each time, and `npm run test:faults` ten times as many; two test files share
 * them. KVRELAY_SEED begins with another one, KVRELAY_RUNS plays more or fewer:
 *
 *     KVRELAY_SEED=100000 KVRELAY_RUNS=50000 npx vitest run test/simulation/histories
 */
import { expect, test, vi } from 'vitest';
import { scaled } from '../support/whole.ts';
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

/** Seeds of one test, so that a long run shows how far it is. */
const PORTION = 250;
/** A broken build would fail them all: the first few say enough. */
const MAX_FAILURES = 3;

/** Tests of each second seed: the first one and what follows it, or those between. */
export function playSeeds(which: 'first and on' | 'second and on'): void {
  const all = Array.from({ length: seedCount }, (_, index) => firstSeed + index);
  const seeds = all.filter((_, index) => (index % 2 === 0) === (which === 'first and on'));
  const portions = Array.from({ length: Math.ceil(seeds.length / PORTION) }, (_, index) =>
    seeds.slice(index * PORTION, (index + 1) * PORTION),
  ).map((portion) => ({ portion, first: portion[0], last: portion.at(-1) }));

  test.each(portions)(
    'each second history from $first to $last',
    { timeout: 600_000 },
    async ({ portion }) => {
      const failures: string[] = [];
      for (const seed of portion) {
        const failure = failures.length < MAX_FAILURES ? await failureOf(seed) : null;
        if (failure !== null) failures.push(failure);
      }
      expect(failures.join('\n\n')).toBe('');
    },
  );
}

export function playSeed(seed: number): Promise<string | null> {
  return failureOf(seed);
}
