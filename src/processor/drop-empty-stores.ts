/**
 * `safe`: a store without blocks publishes nothing and separates nothing. It has taken its raw event id,
 * so it leaves only behind the gap check.
 */
import { filter, identity, type MonoTypeOperatorFunction, map, pipe } from 'rxjs';
import { type Compat, diverges } from '../protocol/compat.ts';
import type { PlacementBatch } from '../protocol/placement-event.ts';

export function dropEmptyStores(compat: Compat): MonoTypeOperatorFunction<PlacementBatch> {
  if (!diverges(compat, 'empty-store')) return identity;
  return pipe(
    map(withoutEmptyStores),
    filter((batch) => batch.length > 0),
  );
}

function withoutEmptyStores(batch: PlacementBatch): PlacementBatch {
  // Nearly every batch has none and passes without a copy.
  if (!batch.some(({ type, blockCount }) => type === 'stored' && blockCount === 0)) return batch;
  return batch.filter(({ type, blockCount }) => type !== 'stored' || blockCount > 0);
}
