/** Operator of the index: records each batch before it is published. */
import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { RouterBatch } from '../protocol/router-event.ts';
import type { LocalIndexer } from './local-indexer.ts';

/** Without an index (null) events pass untouched. */
export function index(indexer: LocalIndexer | null): MonoTypeOperatorFunction<RouterBatch> {
  return tap((batch) => indexer?.record(batch));
}
