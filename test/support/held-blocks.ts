/** What an index holds, read out of its own dump. */

import type { BlockIndex, TierOfRank } from '../../src/indexer/block-index.ts';
import { arena } from '../../src/kernel/arena.ts';
import { allocateBlock, releaseBlock, views } from '../../src/kernel/kernel.ts';
import { MAX_DUMP_EVENT_BYTES } from '../../src/kernel/router-tiers.ts';
import { U64List } from '../../src/kernel/u64-list.ts';
import { PlacementEvent } from '../../src/protocol/placement-event.ts';
import { RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { consecutiveEventsOf, type PublishedEvent } from './published-events.ts';
import type { HeldRow, ModelEvent } from './router-index-model.ts';

const encoder = new RouterEventEncoder(42n);

/** Applies a model's event to an index, as the pipeline would. */
export function applyTo(index: BlockIndex, event: ModelEvent, dpRank = 0): void {
  arena.reset();
  index.apply(placementOf(event, dpRank));
}

export function placementOf(event: ModelEvent, dpRank: number): PlacementEvent {
  if (event.type === 'cleared') {
    return new PlacementEvent('cleared', dpRank, 'device', new U64List(0), null, 0);
  }
  if (event.type === 'removed') {
    return new PlacementEvent('removed', dpRank, event.tier, U64List.of(...event.hashes), null, 0);
  }
  const hashes = U64List.of(...event.blocks.map(({ blockHash }) => blockHash));
  const tokens = U64List.of(...event.blocks.map(({ tokensHash }) => tokensHash));
  const placement = new PlacementEvent('stored', dpRank, event.tier, hashes, tokens, 0);
  placement.hasParent = event.parent !== null;
  placement.parentLow = Number(BigInt.asIntN(32, event.parent ?? 0n));
  placement.parentHigh = Number(BigInt.asIntN(32, (event.parent ?? 0n) >> 32n));
  return placement;
}

/** The store events of a whole dump. */
export function dumpOf(index: BlockIndex): PublishedEvent[] {
  return index.tiers.flatMap(dumpOfTier);
}

export function dumpOfTier({ dpRank, storageTier, tier }: TierOfRank): PublishedEvent[] {
  const room = allocateBlock(MAX_DUMP_EVENT_BYTES);
  const events: PublishedEvent[] = [];
  const template = encoder.storedTemplate(storageTier);
  tier.startDump();
  for (let firstEventId = 0; !tier.dumpHasEnded; ) {
    const part = tier.dumpPart(room.address, room.bytes, { template, firstEventId, dpRank });
    firstEventId += part.events;
    events.push(...consecutiveEventsOf(views.u8.slice(room.address, room.address + part.bytes)));
  }
  releaseBlock(room);
  return events;
}

/** Rows of one rank, in the order of the dump. */
export function rowsOf(events: readonly PublishedEvent[], dpRank = 0): HeldRow[] {
  return events.flatMap(({ rank, tier, parent, blocks }) => {
    if (rank !== dpRank) return [];
    return blocks.map(({ hash, tokensHash }, at): HeldRow => {
      const above = at === 0 ? parent : (blocks[at - 1]?.hash ?? null);
      const tierName = tier as HeldRow[0];
      return [tierName, above === null ? null : `${above}`, `${hash}`, `${tokensHash}`];
    });
  });
}
