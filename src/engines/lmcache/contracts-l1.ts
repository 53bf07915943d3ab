/**
 * What the L1 manager and the storage manager publish about their keys, and where L1 fails.
 * Rows of the table in `contracts.ts`.
 */
export const L1_CONTRACTS = {
  L1_READ_RESERVED: {
    value: 'l1.read.reserved',
    by: 'L1Manager.reserve_read',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
    },
  },
  L1_READ_FINISHED: {
    value: 'l1.read.finished',
    by: 'L1Manager.finish_read',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
    },
  },
  L1_WRITE_RESERVED: {
    value: 'l1.write.reserved',
    by: 'L1Manager.reserve_write',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
      tag: { type: 'text', since: '0.5.6' },
    },
  },
  L1_WRITE_FINISHED: {
    value: 'l1.write.finished',
    by: 'L1Manager.finish_write',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
      meta: { type: 'objectMetas', since: '0.5.3' },
    },
  },
  L1_WRITE_FINISHED_AND_READ_RESERVED: {
    value: 'l1.write_finished_and_read_reserved',
    by: 'L1Manager.finish_write_and_reserve_read',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
      meta: { type: 'objectMetas', since: '0.5.3' },
    },
  },
  L1_KEYS_EVICTED: {
    value: 'l1.keys.evicted',
    by: 'L1Manager: finish_read, delete, clear',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
      meta: { type: 'objectMetas', since: '0.5.3' },
    },
  },
  L1_KEYS_ACCESSED: {
    value: 'l1.keys.accessed',
    since: '0.5.3',
    by: 'L1Manager.touch_keys, while anybody subscribes',
    fields: {
      keys: { type: 'keys' },
      l1_tag: { type: 'text', since: '0.5.6' },
    },
  },
  L1_EVICTION_LOOP_TICK: {
    value: 'l1.eviction.loop_tick',
    by: 'L1EvictionController.eviction_loop, about once a second',
    fields: {
      usage: { type: 'float' },
      watermark: { type: 'float' },
      triggered: { type: 'bool' },
    },
  },
  L1_ALLOCATION_FAILED: {
    value: 'l1.allocation.failed',
    by: 'StorageManager.reserve_write; PrefetchController before 0.5.3',
    fields: {
      during: { type: 'text', values: ['l1_store', 'l2_prefetch'] },
      keys: { type: 'keys' },
    },
  },
  L1_READ_FAILED: {
    value: 'l1.read.failed',
    by: 'StorageManager.read_prefetched_results, StoreController',
    fields: {
      during: { type: 'text', values: ['l2_store', 'l1_retrieve'] },
      reason: { type: 'text', values: ['not_found', 'write_locked'] },
      keys: { type: 'keys' },
    },
  },
  SM_READ_PREFETCHED: {
    value: 'sm.read.prefetched',
    until: '0.5.5',
    by: 'StorageManager.submit_prefetch_task',
    fields: {
      succeeded_keys: { type: 'keys' },
      failed_keys: { type: 'keys' },
    },
  },
  SM_READ_PREFETCHED_FINISHED: {
    value: 'sm.read.prefetched_finished',
    by: 'StorageManager: read_prefetched_results, finish_read_prefetched',
    fields: {
      succeeded_keys: { type: 'keys' },
      failed_keys: { type: 'keys' },
    },
  },
  SM_WRITE_RESERVED: {
    value: 'sm.write.reserved',
    by: 'StorageManager.reserve_write',
    fields: {
      succeeded_keys: { type: 'keys' },
      failed_keys: { type: 'keys' },
    },
  },
  SM_WRITE_FINISHED: {
    value: 'sm.write.finished',
    by: 'StorageManager: finish_write',
    fields: {
      succeeded_keys: { type: 'keys' },
      failed_keys: { type: 'keys' },
    },
  },
  SM_CAPACITY_CHANGED: {
    value: 'sm.capacity.changed',
    since: '0.5.5',
    by: 'StorageManager, when an L1 pool or an L2 adapter comes or goes',
    fields: {
      snapshot: { type: 'capacitySnapshot' },
    },
  },
} as const;
