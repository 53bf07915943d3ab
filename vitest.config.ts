import type { ViteUserConfig } from 'vitest/config';
import { closingCounts, missingServers } from './test/support/closing-counts.ts';

/** What measures times, rates and memory, or waits for less than a busy machine may take. */
const TIMED = [
  'test/{sinks,status,listener}/**/*.test.ts',
  // The files left out mostly wait, and have time to.
  'test/{trials,integration}/!(stores).test.ts',
  'test/router/**/!(etcd-discovery).test.ts',
  'test/cli/inspect.test.ts',
  'test/indexer/local-indexer.test.ts',
  'test/kernel/tables.test.ts',
];
const ELSEWHERE = ['test/peers/**', 'test/interop/**'];

const config: ViteUserConfig = {
  test: {
    // A worker thread that holds a ZeroMQ socket aborts the whole process when it ends.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    passWithNoTests: false,
    // A machine of others' may be held up in just that moment; the closing lines name what was tried again.
    retry: 1,
    reporters: ['default', closingCounts(missingServers)],
    projects: [
      {
        extends: true,
        test: {
          name: 'untimed',
          include: ['test/**/*.test.ts'],
          exclude: [...ELSEWHERE, ...TIMED],
          // Also on a machine of two cores, where vitest would take one: many of them mostly wait.
          maxWorkers: 3,
        },
      },
      {
        extends: true,
        // One file at a time, when all others have ended.
        test: {
          name: 'timed',
          include: TIMED,
          exclude: ELSEWHERE,
          fileParallelism: false,
        },
      },
    ],
  },
};

export default config;
