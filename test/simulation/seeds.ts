/** Which histories are played. */
import { scaled } from '../support/whole.ts';

/**
 * In CI these many seeds from 1 on, the same each time; `npm run test:faults` plays ten times as many.
 * KVRELAY_SEED begins with another one, KVRELAY_RUNS plays more or fewer:
 *
 *     KVRELAY_SEED=100000 KVRELAY_RUNS=50000 npx vitest run test/simulation
 */
export const firstSeed: number = Number(process.env.KVRELAY_SEED ?? 1);
export const seedCount: number = Number(process.env.KVRELAY_RUNS ?? scaled(2000, 20_000));

/** Seeds that have found a defect, each with what it was; they are played every time. */
export const FOUND: readonly (readonly [seed: number, defect: string])[] = [
  [142, 'what a new life had sent live counted as lost with the old one'],
  [166, 'the same, where batches had found no room'],
  [505, 'a restarted engine that is idle below our mark was taken for the old one'],
];
