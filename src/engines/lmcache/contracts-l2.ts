/**
 * What the controllers of the second tier publish, and the events of no component: time-outs and traces.
 * Rows of the table in `contracts.ts`.
 */
export const L2_CONTRACTS = {
  L2_STORE_SUBMITTED: {
    value: 'l2.store.submitted',
    by: 'StoreController, one a task',
    fields: {
      adapter_index: { type: 'int' },
      task_id: { type: 'int' },
      l2_name: { type: 'text' },
      key_count: { type: 'int' },
      total_bytes: { type: 'int' },
      key_count_per_salt: { type: 'saltCounts' },
    },
  },
  L2_STORE_COMPLETED: {
    value: 'l2.store.completed',
    by: 'StoreController, one a task',
    fields: {
      adapter_index: { type: 'int' },
      task_id: { type: 'int' },
      l2_name: { type: 'text' },
      bytes_transferred: { type: 'int' },
      succeeded_count: { type: 'int' },
      failed_count: { type: 'int' },
      key_count_per_salt: {
        type: 'saltCounts',
        absent: { why: 'nothing was stored', where: 'succeeded_count', is: 0 },
      },
    },
  },
  L2_PREFETCH_LOOKUP_SUBMITTED: {
    value: 'l2.prefetch.lookup.submitted',
    by: 'PrefetchController, one a request',
    fields: {
      request_id: { type: 'int' },
      key_count: { type: 'int' },
      adapter_count: { type: 'int' },
      key_count_per_salt: { type: 'saltCounts' },
    },
  },
  L2_PREFETCH_LOOKUP_COMPLETED: {
    value: 'l2.prefetch.lookup.completed',
    until: '0.5.5',
    by: 'PrefetchController, one a request',
    fields: {
      request_id: { type: 'int' },
      prefix_hit_count: { type: 'int' },
    },
  },
  L2_PREFETCH_LOAD_SUBMITTED: {
    value: 'l2.prefetch.load.submitted',
    by: 'PrefetchController, one a request',
    fields: {
      request_id: { type: 'int' },
      key_count: { type: 'int' },
      adapter_count: { type: 'int' },
      key_count_per_salt: { type: 'saltCounts' },
    },
  },
  L2_PREFETCH_LOAD_COMPLETED: {
    value: 'l2.prefetch.load.completed',
    by: 'PrefetchController, one a request',
    fields: {
      request_id: { type: 'int' },
      loaded_count: { type: 'int' },
      failed_count: { type: 'int' },
      key_count_per_salt: { type: 'saltCounts' },
    },
  },
  L2_LOAD_TASK_SUBMITTED: {
    value: 'l2.load_task.submitted',
    by: 'PrefetchController, one a request and adapter',
    fields: {
      request_id: { type: 'int' },
      adapter_index: { type: 'int' },
      task_id: { type: 'int' },
      l2_name: { type: 'text' },
      key_count: { type: 'int' },
      total_bytes: { type: 'int' },
    },
  },
  L2_LOAD_TASK_COMPLETED: {
    value: 'l2.load_task.completed',
    by: 'PrefetchController, one a request and adapter',
    fields: {
      request_id: { type: 'int' },
      adapter_index: { type: 'int' },
      task_id: { type: 'int' },
      l2_name: { type: 'text' },
    },
  },
  L2_KEYS_EVICTED: {
    value: 'l2.keys.evicted',
    by: 'L2EvictionController, when at least one key went',
    fields: {
      key_count: { type: 'int' },
      key_count_per_salt: { type: 'saltCounts' },
    },
  },
  L2_KEYS_STORED: {
    value: 'l2.keys.stored',
    since: '0.5.3',
    by: 'L2 adapters',
    fields: {
      keys: { type: 'keys' },
      sizes: { type: 'ints' },
      backend: { type: 'text' },
      shared: { type: 'bool' },
    },
  },
  L2_KEYS_ACCESSED: {
    value: 'l2.keys.accessed',
    since: '0.5.3',
    by: 'L2 adapters',
    fields: {
      keys: { type: 'keys' },
      backend: { type: 'text' },
      shared: { type: 'bool' },
    },
  },
  L2_KEYS_DELETED: {
    value: 'l2.keys.deleted',
    since: '0.5.3',
    by: 'L2 adapters',
    fields: {
      keys: { type: 'keys' },
      backend: { type: 'text' },
      shared: { type: 'bool' },
    },
  },
  L2_PREFETCH_FAILED: {
    value: 'l2.prefetch.failed',
    by: 'PrefetchController',
    fields: {
      reason: { type: 'text', values: ['l1_oom', 'not_found', 'l1_contended'] },
      keys: { type: 'keys' },
    },
  },
  TIMEOUT_RAISED: {
    value: 'timeout.raised',
    by: 'LMCacheTimeoutError, when it is made',
    session: 'if known',
    fields: {
      message: { type: 'text' },
      exception_type: { type: 'text' },
      stacktrace: { type: 'text' },
    },
  },
  TRACE_CALL: {
    value: 'trace.call',
    by: 'functions that are traced',
    fields: {
      qualname: { type: 'text' },
      args: { type: 'map' },
      t_mono: { type: 'float' },
    },
  },
} as const;
