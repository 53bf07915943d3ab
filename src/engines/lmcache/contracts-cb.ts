/**
 * What the blend server publishes: the sentinels around a request, its lookups, stores and retrieves.
 * Rows of the table in `contracts.ts`.
 */
export const CB_CONTRACTS = {
  CB_REQUEST_START: {
    value: 'cb.request.start',
    by: 'blend server, when a lookup arrives',
    session: 'always',
    fields: {},
  },
  CB_STORE_PRE_COMPUTED_SUBMITTED: {
    value: 'cb.store_pre_computed.submitted',
    until: '0.5.4',
    by: 'blend server, before the store is enqueued on the GPU',
    session: 'always',
    fields: {
      instance_id: { type: 'int' },
    },
  },
  CB_RETRIEVE_SUBMITTED: {
    value: 'cb.retrieve.submitted',
    by: 'blend server, before the retrieve is enqueued on the GPU',
    session: 'always',
    fields: {
      instance_id: { type: 'int' },
    },
  },
  CB_STORE_FINAL_SUBMITTED: {
    value: 'cb.store_final.submitted',
    until: '0.5.4',
    by: 'blend server, before the store is enqueued on the GPU',
    session: 'always',
    fields: {
      instance_id: { type: 'int' },
    },
  },
  CB_REQUEST_END: {
    value: 'cb.request.end',
    by: 'blend server, after all work of the CPU',
    session: 'always',
    isOnStream: true,
    fields: {},
  },
  CB_LOOKUP_START: {
    value: 'cb.lookup.start',
    by: 'blend server',
    session: 'always',
    fields: {
      num_tokens: { type: 'int' },
    },
  },
  CB_LOOKUP_END: {
    value: 'cb.lookup.end',
    by: 'blend server',
    session: 'always',
    fields: {
      num_tokens: { type: 'int' },
      requested_tokens: { type: 'int' },
      hit_tokens: { type: 'int' },
      fingerprint_hits: { type: 'int' },
      storage_hits: { type: 'int' },
      stale_chunks: { type: 'int' },
      no_gpu_context: { type: 'bool' },
      prefix_hits: { type: 'int' },
      prefix_chunks: { type: 'int', absent: { why: 'blend engine V2 has no such legs' } },
      prefix_hit_tokens: { type: 'int', absent: { why: 'blend engine V2 has no such legs' } },
      segmented_prefix_hit_tokens: {
        type: 'int',
        absent: { why: 'blend engine V2 has no such legs' },
      },
      non_prefix_hit_tokens: { type: 'int', absent: { why: 'blend engine V2 has no such legs' } },
    },
  },
  CB_STORE_PRE_COMPUTED_START: {
    value: 'cb.store_pre_computed.start',
    until: '0.5.4',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      instance_id: { type: 'int' },
      num_tokens: { type: 'int' },
    },
  },
  CB_STORE_PRE_COMPUTED_END: {
    value: 'cb.store_pre_computed.end',
    until: '0.5.4',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      instance_id: { type: 'int' },
      num_tokens: { type: 'int' },
      stored_chunks: { type: 'int' },
      success: { type: 'bool' },
    },
  },
  CB_RETRIEVE_START: {
    value: 'cb.retrieve.start',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      instance_id: {
        type: 'int',
        until: '0.5.4',
        absent: { why: 'blend engine V3 leaves it out' },
      },
      num_chunks: { type: 'int' },
      model_name: { type: 'text', absent: { why: 'blend engine V2 leaves it out' } },
      worker_id: {
        type: 'int',
        since: '0.5.5',
        absent: {
          why: 'nil without a worker; the recorder of a GPU stream makes it the text None',
        },
      },
    },
  },
  CB_RETRIEVE_END: {
    value: 'cb.retrieve.end',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      instance_id: {
        type: 'int',
        until: '0.5.4',
        absent: { why: 'blend engine V3 leaves it out' },
      },
      num_chunks: { type: 'int', until: '0.5.4', absent: { why: 'blend engine V3 leaves it out' } },
      success: { type: 'bool' },
      worker_id: {
        type: 'int',
        since: '0.5.5',
        absent: {
          why: 'nil without a worker; the recorder of a GPU stream makes it the text None',
        },
      },
    },
  },
  CB_STORE_FINAL_START: {
    value: 'cb.store_final.start',
    until: '0.5.4',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      instance_id: { type: 'int' },
      num_tokens: { type: 'int' },
    },
  },
  CB_STORE_FINAL_END: {
    value: 'cb.store_final.end',
    until: '0.5.4',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      instance_id: { type: 'int' },
      num_tokens: { type: 'int' },
      stored_chunks: { type: 'int' },
      success: { type: 'bool' },
    },
  },
} as const;
