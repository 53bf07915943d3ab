import type { ViteUserConfig } from 'vitest/config';
import { closingCounts } from './test/support/closing-counts.ts';

const config: ViteUserConfig = {
  test: {
    // Not `.test.ts`: `npm test` does without a browser.
    include: ['test/page/**/*.spec.ts'],
    // ZeroMQ sockets and worker threads do not go together.
    pool: 'forks',
    // One browser at a time: the figures of one page must not be another one's load.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
    reporters: ['default', closingCounts(() => [])],
  },
};

export default config;
