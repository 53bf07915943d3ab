import type { ViteUserConfig } from 'vitest/config';
import { closingCounts, missingServers } from './test/support/closing-counts.ts';

const config: ViteUserConfig = {
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/peers/**', 'test/interop/**'],
    // A worker thread that holds a ZeroMQ socket aborts the whole process when it ends.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    passWithNoTests: false,
    reporters: ['default', closingCounts(missingServers)],
  },
};

export default config;
