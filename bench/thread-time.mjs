/** CPU time of the main thread: what else runs on the machine is not in it, but for the caches it takes. */
import { readFileSync } from 'node:fs';

const SCHEDULED = `/proc/self/task/${process.pid}/schedstat`;

/** Nanoseconds, in steps of a few milliseconds; where no file tells, those of the clock. */
export function threadNs() {
  try {
    return Number(readFileSync(SCHEDULED, 'latin1').split(' ')[0]);
  } catch {
    return performance.now() * 1e6;
  }
}
