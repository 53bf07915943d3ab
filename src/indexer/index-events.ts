/** Operator of the index: applies each router event before the batch is published. */
import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { RouterBatch } from '../protocol/router-event.ts';
import type { LiveSet } from './live-set.ts';

/** Without an index (null) events pass untouched. */
export function index(liveSet: LiveSet | null): MonoTypeOperatorFunction<RouterBatch> {
  return tap((batch) => {
    for (const event of batch.events) liveSet?.apply(event);
  });
}
