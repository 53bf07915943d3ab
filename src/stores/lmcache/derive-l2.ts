/** L2: tasks and chunks, and the throughput of each adapter from the pairs of its tasks. */
import type { Int } from '../../engines/lmcache/contracts.ts';
import type { LmcacheCounter } from '../../metrics/lmcache-families.ts';
import type { LmcacheHistogram } from '../../metrics/lmcache-histograms.ts';
import {
  amount,
  type DeriverDeps,
  type Handlers,
  labelsOf,
  NANOGIGA,
  withSalt,
} from './deriver.ts';
import { Pairs } from './pairs.ts';

export function deriveL2({ series }: DeriverDeps): Handlers {
  const countSalts = (
    name: LmcacheCounter,
    salts: Readonly<Record<string, number>> | undefined,
  ): void => {
    for (const salt in salts) series.add(name, salts[salt] as number, withSalt({}, salt));
  };
  return {
    L2_STORE_SUBMITTED: ({ metadata }) => {
      series.add('l2_store_submitted', 1);
      countSalts('l2_store_submitted_objects', metadata.key_count_per_salt);
    },
    L2_STORE_COMPLETED: ({ metadata: { l2_name, key_count_per_salt } }) => {
      series.add('l2_store_completed', 1, labelsOf({ l2_name }));
      countSalts('l2_store_completed_objects', key_count_per_salt);
    },
    L2_LOAD_TASK_COMPLETED: ({ metadata: { l2_name } }) =>
      series.add('l2_load_completed', 1, labelsOf({ l2_name })),
    L2_PREFETCH_LOOKUP_SUBMITTED: ({ metadata }) => {
      series.add('l2_prefetch_lookup', 1);
      countSalts('l2_prefetch_lookup_objects', metadata.key_count_per_salt);
    },
    L2_PREFETCH_LOOKUP_COMPLETED: ({ metadata: { prefix_hit_count } }) => {
      if (prefix_hit_count !== undefined) series.add('l2_prefetch_hit', amount(prefix_hit_count));
    },
    L2_PREFETCH_LOAD_SUBMITTED: ({ metadata: { adapter_count, key_count_per_salt } }) => {
      if (adapter_count !== undefined)
        series.add('l2_prefetch_load_submitted', amount(adapter_count));
      countSalts('l2_prefetch_load_submitted_objects', key_count_per_salt);
    },
    L2_PREFETCH_LOAD_COMPLETED: ({ metadata }) =>
      countSalts('l2_prefetch_load_completed', metadata.key_count_per_salt),
    L2_KEYS_EVICTED: ({ metadata }) =>
      countSalts('l2_evicted_objects', metadata.key_count_per_salt),
  };
}

/** A store by adapter and task, a load by request and adapter. The time includes the adapter's queue. */
export function deriveL2Throughput({ series, options, counts }: DeriverDeps): Handlers {
  const stores = new Pairs<number>(options);
  const loads = new Pairs<number>(options);
  counts.pairs.push(stores, loads);
  const record = (
    name: LmcacheHistogram,
    bytes: number,
    seconds: number,
    l2_name: string | undefined,
  ): void => {
    if (bytes > 0 && seconds > 0)
      series.observe(name, bytes / seconds / NANOGIGA, labelsOf({ l2_name }));
  };
  return {
    L2_STORE_SUBMITTED: ({ timestamp, metadata: { adapter_index, task_id, total_bytes } }) => {
      const key = keyOf(adapter_index, task_id);
      if (key !== null) stores.start(key, timestamp, amount(total_bytes));
    },
    L2_STORE_COMPLETED: ({ timestamp, metadata }) => {
      const { adapter_index, task_id, bytes_transferred, l2_name } = metadata;
      const key = keyOf(adapter_index, task_id);
      const pair = key === null ? null : stores.end(key, timestamp);
      if (pair === null) return;
      const bytes = bytes_transferred === undefined ? pair.value : amount(bytes_transferred);
      record('l2_store_throughput', bytes, pair.seconds, l2_name);
    },
    L2_LOAD_TASK_SUBMITTED: ({
      timestamp,
      metadata: { request_id, adapter_index, total_bytes },
    }) => {
      const key = keyOf(request_id, adapter_index);
      if (key !== null) loads.start(key, timestamp, amount(total_bytes));
    },
    L2_LOAD_TASK_COMPLETED: ({ timestamp, metadata: { request_id, adapter_index, l2_name } }) => {
      const key = keyOf(request_id, adapter_index);
      const pair = key === null ? null : loads.end(key, timestamp);
      if (pair !== null) record('l2_load_throughput', pair.value, pair.seconds, l2_name);
    },
  };
}

function keyOf(one: Int | undefined, other: Int | undefined): string | null {
  return one === undefined || other === undefined ? null : `${one} ${other}`;
}
