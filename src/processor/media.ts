/**
 * Media as engines name them, to the tier a router knows.
 *
 * strict   compares names with their case, and does not know FS and OBJ, as the real publisher
 * safe     compares without case: connectors write `cpu`, and one vLLM version FS and OBJ
 * Source   ai-dynamo/dynamo 1.6.1; the media that engines send.
 */
import type { MediumLabel } from '../metrics/relay-metrics.ts';
import { type Compat, diverges } from '../protocol/compat.ts';
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

const SAFE_TIER_OF_MEDIUM: ReadonlyMap<string, StorageTier> = new Map([
  ...TIER_OF_MEDIUM,
  ['FS', 'disk'],
  ['OBJ', 'external'],
]);

/** The tier of a medium, undefined for a name that is not known; no medium is the device. */
export function tierOfMedium(medium: string | null, compat: Compat): StorageTier | undefined {
  if (medium === null) return 'device';
  const tier = TIER_OF_MEDIUM.get(medium);
  if (tier !== undefined || !diverges(compat, 'media')) return tier;
  return SAFE_TIER_OF_MEDIUM.get(medium.toUpperCase());
}

/** The label under which a medium is counted: its name where engines use it, whatever its case. */
export function mediumLabel(medium: string | null): MediumLabel {
  if (medium === null) return 'none';
  if (TIER_OF_MEDIUM.has(medium)) return medium as MediumLabel;
  const upper = medium.toUpperCase();
  return SAFE_TIER_OF_MEDIUM.has(upper) ? (upper as MediumLabel) : 'other';
}
