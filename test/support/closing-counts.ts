/** The last lines of a test run: what was left out and why, what took a second attempt, and the counts in one plain line. */
import type { Reporter } from 'vitest/node';

/** `reasonsOf` tells, at the end, what is missing on this machine; shown only if a test was skipped. */
export function closingCounts(reasonsOf: () => readonly string[]): Reporter {
  return {
    onTestRunEnd(files, unhandledErrors) {
      const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
      const leftOut: string[] = [];
      const retried: string[] = [];
      for (const file of files) {
        let skipped = 0;
        for (const test of file.children.allTests()) {
          counts[test.result().state]++;
          if (test.result().state === 'skipped') skipped++;
          if (test.diagnostic()?.flaky) retried.push(`  ${file.relativeModuleId}: ${test.name}`);
        }
        // A file that cannot be loaded holds no test that could fail.
        counts.failed += file.errors().length;
        if (skipped > 0) leftOut.push(`  ${file.relativeModuleId}: ${skipped}`);
      }
      if (leftOut.length > 0) {
        console.log([`Left out:`, ...leftOut, ...reasonsOf()].join('\n'));
      }
      if (retried.length > 0) console.log(['Failed at first:', ...retried].join('\n'));
      const skipped = counts.skipped + counts.pending;
      console.log(`${counts.passed} passed, ${counts.failed} failed, ${skipped} skipped`);
    },
  };
}

/** The reasons that `npm test` hands on when a server was not found. */
export function missingServers(): string[] {
  const { KVRELAY_NATS_MISSING: nats, KVRELAY_ETCD_MISSING: etcd } = process.env;
  return [...(nats ? [`No nats-server: ${nats}`] : []), ...(etcd ? [`No etcd: ${etcd}`] : [])];
}
