/** Builders of placement events for tests, in the field's own words. */
import { U64List, u64Of } from '../../src/kernel/u64-list.ts';
import { PlacementEvent } from '../../src/protocol/placement-event.ts';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';

interface Where {
  dpRank?: number;
  tier?: StorageTier;
  sessionId?: string;
}

export function stored(
  parent: bigint | null,
  hashes: readonly bigint[],
  { dpRank = 0, tier = 'device', sessionId }: Where = {},
): PlacementEvent {
  const blocks = U64List.of(...hashes);
  const tokens = U64List.of(...hashes.map((hash) => hash + 1000n));
  const event = new PlacementEvent('stored', dpRank, tier, blocks, tokens, 0);
  event.hasParent = parent !== null;
  event.parentLow = Number(BigInt.asIntN(32, parent ?? 0n));
  event.parentHigh = Number(BigInt.asIntN(32, (parent ?? 0n) >> 32n));
  event.sessionId = sessionId ?? null;
  return event;
}

export function removed(
  hashes: readonly bigint[],
  { dpRank = 0, tier = 'device' }: Where = {},
): PlacementEvent {
  return new PlacementEvent('removed', dpRank, tier, U64List.of(...hashes), null, 0);
}

export function cleared(dpRank = 0): PlacementEvent {
  return new PlacementEvent('cleared', dpRank, 'device', new U64List(0), null, 0);
}

/** `S 7:[1,2]`, `R [3]`, `X`, with rank and tier where they are not the usual ones. */
export function shown(event: PlacementEvent): string {
  const rank = event.dpRank === 0 ? '' : ` r${event.dpRank}`;
  const tier = event.storageTier === 'device' ? '' : ` ${event.storageTier}`;
  if (event.type === 'cleared') return `X${rank}`;
  const hashes = `[${event.blockHashes.toBigInts().join()}]`;
  if (event.type === 'removed') return `R ${hashes}${rank}${tier}`;
  const parent = u64Of(event.parentLow, event.parentHigh);
  return `S ${event.hasParent ? `${parent}:` : ''}${hashes}${rank}${tier}`;
}
