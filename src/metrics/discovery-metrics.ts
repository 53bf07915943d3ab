/** What went wrong with discovery, as plain fields that the backend's owner increments. */
import { type Counts, zeroCounts } from './counts.ts';

export const DISCOVERY_FAULTS = [
  'read',
  'write',
  'watch',
  'too_large',
  'too_many',
  'lease_lost',
] as const;
export type DiscoveryFault = (typeof DISCOVERY_FAULTS)[number];

export class DiscoveryMetrics {
  readonly faults: Counts<DiscoveryFault> = zeroCounts(DISCOVERY_FAULTS);
  /** Sources announced, each under a publisher id of its own or again after a withdrawal. */
  announcements = 0;
  /** Sources withdrawn because another one claimed the same worker and rank. */
  ambiguities = 0;
  /** Records of an earlier life that were taken away. */
  evictedRecords = 0;
}
