/** CoordinatorMetrics: what the endpoint for LMCache's MP servers counts besides what every source does. */
import { type Counts, zeroCounts } from './counts.ts';

export const COORDINATOR_BATCH_OUTCOMES = ['applied', 'duplicates', 'stale'] as const;
export type CoordinatorBatchOutcome = (typeof COORDINATOR_BATCH_OUTCOMES)[number];

/**
 * Requests that were refused, by why; `busy`: too much of others was being read; `loop`: handed on from here, and
 * come back.
 */
export const COORDINATOR_REFUSALS = [
  'host',
  'origin',
  'loop',
  'oversize',
  'busy',
  'incomplete',
  'unknown_path',
  'method',
  'invalid',
  'connections',
] as const;
export type CoordinatorRefusal = (typeof COORDINATOR_REFUSALS)[number];

/** How a request to the coordinator behind ended; `overflow`: it did not go out, too many wait. */
export const FORWARD_OUTCOMES = ['answered', 'unreachable', 'timeout', 'overflow'] as const;
export type ForwardOutcome = (typeof FORWARD_OUTCOMES)[number];

export class CoordinatorMetrics {
  requests = 0;
  readonly batches: Counts<CoordinatorBatchOutcome> = zeroCounts(COORDINATOR_BATCH_OUTCOMES);
  readonly refusals: Counts<CoordinatorRefusal> = zeroCounts(COORDINATOR_REFUSALS);
  readonly forwards: Counts<ForwardOutcome> = zeroCounts(FORWARD_OUTCOMES);
  accessedKeys = 0;
  declarations = 0;
  /** Members that were silent too long. */
  expiredInstances = 0;
  /** Servers given up, and batches of new ones dropped, because there were too many. */
  crowdedOutInstances = 0;
}
