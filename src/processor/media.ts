/**
 * Media as engines name them, to the tier a router knows.
 *
 * Source  ai-dynamo/dynamo 1.6.1; the names are compared with their case.
 */
import type { MediumLabel } from '../metrics/relay-metrics.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';

const TIER_OF_MEDIUM: ReadonlyMap<string, StorageTier> = new Map<MediumLabel, StorageTier>([
  ['GPU', 'device'],
  ['DEVICE', 'device'],
  ['CPU', 'host_pinned'],
  ['CPU_PINNED', 'host_pinned'],
  ['CPU_TIER1', 'host_pinned'],
  ['CPU_TIER2', 'disk'],
  ['DISK', 'disk'],
  ['NVME', 'disk'],
  ['STORAGE', 'disk'],
  ['EXTERNAL', 'external'],
  ['NETWORK', 'external'],
  ['REMOTE', 'external'],
  ['SHARED', 'external'],
]);

/** The tier of a medium, undefined for a name that is not known; no medium is the device. */
export function tierOfMedium(medium: string | null): StorageTier | undefined {
  return medium === null ? 'device' : TIER_OF_MEDIUM.get(medium);
}

/** The label under which a medium is counted: its name where that is known. */
export function mediumLabel(medium: string | null): MediumLabel {
  if (medium === null) return 'none';
  return TIER_OF_MEDIUM.has(medium) ? (medium as MediumLabel) : 'other';
}
