/** L1 and the storage manager's failures: counters by salt, by model and of the eviction loop. */
import type { ObjectKey } from '../../engines/lmcache/contracts.ts';
import type { LmcacheCounter } from '../../metrics/lmcache-families.ts';
import type { Labels } from '../../metrics/lmcache-series.ts';
import { countBy, type DeriverDeps, type Handlers, labelsOf, withSalt } from './deriver.ts';

interface KeysOfTag {
  readonly metadata: { readonly keys?: readonly ObjectKey[]; readonly l1_tag?: string };
}

export function deriveL1({ series }: DeriverDeps): Handlers {
  const countKeys =
    (name: LmcacheCounter) =>
    ({ metadata: { keys = [], l1_tag } }: KeysOfTag): void => {
      for (const [salt, count] of countBy(keys, 'cache_salt'))
        series.add(name, count, withSalt(labelsOf({ l1_tag }), salt));
    };
  const countModels = (name: LmcacheCounter, labels: Labels, keys: readonly ObjectKey[]): void => {
    for (const [model_name, count] of countBy(keys, 'model_name'))
      series.add(name, count, { ...labels, model_name });
  };
  const countWrites = countKeys('l1_write');
  return {
    L1_READ_FINISHED: countKeys('l1_read'),
    L1_WRITE_FINISHED: countWrites,
    L1_WRITE_FINISHED_AND_READ_RESERVED: countWrites,
    L1_KEYS_EVICTED: countKeys('l1_evicted'),
    L1_EVICTION_LOOP_TICK: ({ metadata }) => {
      series.add('l1_eviction_loop_ticks', 1);
      if (metadata.triggered === true) series.add('l1_eviction_loop_triggered', 1);
    },
    L1_ALLOCATION_FAILED: ({ metadata: { during, keys = [] } }) =>
      countModels('l1_allocation_failure', labelsOf({ during }), keys),
    L1_READ_FAILED: ({ metadata: { during, reason, keys = [] } }) =>
      countModels('l1_read_failure', labelsOf({ during, reason }), keys),
    L2_PREFETCH_FAILED: ({ metadata: { reason, keys = [] } }) =>
      countModels('l2_prefetch_failure', labelsOf({ reason }), keys),
    TIMEOUT_RAISED: ({ metadata: { exception_type } }) =>
      series.add('timeouts', 1, labelsOf({ exception_type })),
  };
}
