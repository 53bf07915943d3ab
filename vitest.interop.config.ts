import type { ViteUserConfig } from 'vitest/config';
import { closingCounts } from './test/support/closing-counts.ts';

/** `scripts/interop.mjs` says one reason a line; without it there is nothing to test against. */
function missingParts(): string[] {
  const reasons = process.env.KVRELAY_INTEROP_MISSING;
  if (reasons === undefined) return ['Start it with `npm run test:interop`'];
  return reasons.split('\n').filter((reason) => reason !== '');
}

const config: ViteUserConfig = {
  test: {
    include: ['test/interop/**/*.test.ts'],
    pool: 'forks',
    // A run spends part of its time waiting, so that two share a small machine well.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    // The figures of each run are for the reader, without a headline for every line.
    disableConsoleIntercept: true,
    reporters: ['default', closingCounts(missingParts)],
  },
};

export default config;
