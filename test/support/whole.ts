/** `npm run test:faults` plays whole what CI plays scaled down: test files that import this have both. */

const isWhole = process.env.KVRELAY_FAULTS === 'whole';

/** The first where CI runs, the second in a whole run. */
export function scaled<Value>(inCi: Value, whole: Value): Value {
  return isWhole ? whole : inCi;
}
