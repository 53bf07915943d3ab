import type { ViteUserConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';

/** Names what was left out and why, and ends with the counts in one plain line. */
const closingCounts: Reporter = {
  onTestRunEnd(files, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    const leftOut: string[] = [];
    for (const file of files) {
      let skipped = 0;
      for (const test of file.children.allTests()) {
        counts[test.result().state]++;
        if (test.result().state === 'skipped') skipped++;
      }
      // A file that cannot be loaded holds no test that could fail.
      counts.failed += file.errors().length;
      if (skipped > 0) leftOut.push(`  ${file.relativeModuleId}: ${skipped}`);
    }
    const missing = process.env.KVRELAY_NATS_MISSING;
    if (leftOut.length > 0) console.log(`Left out:\n${leftOut.join('\n')}`);
    if (leftOut.length > 0 && missing) console.log(`No nats-server: ${missing}`);
    const skipped = counts.skipped + counts.pending;
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${skipped} skipped`);
  },
};

const config: ViteUserConfig = {
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/peers/**', 'test/interop/**'],
    // A worker thread that holds a ZeroMQ socket aborts the whole process when it ends.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    passWithNoTests: false,
    reporters: ['default', closingCounts],
  },
};

export default config;
