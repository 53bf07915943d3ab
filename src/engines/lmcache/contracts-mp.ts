/**
 * What the multiprocess server publishes: the sentinels around a request, its work, and what vLLM reports.
 * Rows of the table in `contracts.ts`.
 */
export const MP_CONTRACTS = {
  MP_REQUEST_START: {
    value: 'mp.request.start',
    by: 'MP server, when a lookup arrives',
    session: 'always',
    fields: {},
  },
  MP_STORE_SUBMITTED: {
    value: 'mp.store.submitted',
    by: 'MP server, before the store is enqueued on the GPU',
    session: 'always',
    fields: {
      device: { type: 'text' },
    },
  },
  MP_RETRIEVE_SUBMITTED: {
    value: 'mp.retrieve.submitted',
    by: 'MP server, before the retrieve is enqueued on the GPU',
    session: 'always',
    fields: {
      device: { type: 'text' },
    },
  },
  MP_REQUEST_END: {
    value: 'mp.request.end',
    by: 'MP server, when the session ends; GPU callbacks may follow',
    session: 'always',
    fields: {},
  },
  MP_STORE_START: {
    value: 'mp.store.start',
    by: 'MP server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      device: { type: 'text' },
      engine_id: { type: 'int' },
      model_name: { type: 'text' },
      transfer_key: { type: 'text', since: '0.5.5' },
    },
  },
  MP_STORE_END: {
    value: 'mp.store.end',
    by: 'MP server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      device: { type: 'text' },
      stored_count: { type: 'int' },
      engine_id: { type: 'int' },
      model_name: { type: 'text' },
      total_bytes: { type: 'int' },
      num_tokens: {
        type: 'int',
        since: '0.5.2',
        absent: { why: 'the quantizing store leaves it out' },
      },
      transfer_key: { type: 'text', since: '0.5.5' },
    },
  },
  MP_RETRIEVE_START: {
    value: 'mp.retrieve.start',
    by: 'MP server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      device: { type: 'text' },
      engine_id: { type: 'int' },
      model_name: { type: 'text' },
      transfer_key: { type: 'text', since: '0.5.5' },
    },
  },
  MP_RETRIEVE_END: {
    value: 'mp.retrieve.end',
    by: 'MP server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      device: { type: 'text' },
      retrieved_count: { type: 'int' },
      engine_id: { type: 'int' },
      model_name: { type: 'text' },
      cache_salt: { type: 'text' },
      total_bytes: { type: 'int' },
      num_tokens: { type: 'int', since: '0.5.2' },
      transfer_key: { type: 'text', since: '0.5.5' },
    },
  },
  MP_LOOKUP_PREFETCH_START: {
    value: 'mp.lookup_prefetch.start',
    by: 'MP server, when a lookup begins',
    session: 'always',
    fields: {},
  },
  MP_LOOKUP_PREFETCH_END: {
    value: 'mp.lookup_prefetch.end',
    by: "MP server, when a lookup's answer is taken",
    session: 'always',
    fields: {
      found_count: { type: 'int' },
      requested_tokens: { type: 'int' },
      hit_tokens: { type: 'int' },
      l1_hit_tokens: { type: 'int', since: '0.5.5' },
      l2_hit_tokens: { type: 'int', since: '0.5.5' },
      l1_hit_keys: { type: 'int', since: '0.5.6' },
      l2_hit_keys: { type: 'int', since: '0.5.6' },
      early_exit_reason: {
        type: 'text',
        since: '0.5.5',
        values: ['', 'no_gpu_context', 'empty_chunk_hashes', 'no_group_layout_descs'],
      },
      model_name: { type: 'text' },
      cache_salt: { type: 'text' },
    },
  },
  MP_LOOKUP: {
    value: 'mp.lookup',
    by: 'MP server, while anybody subscribes',
    session: 'always',
    fields: {
      request_id: { type: 'text' },
      chunk_hashes: { type: 'texts' },
      model_name: { type: 'text' },
      chunk_size: { type: 'int' },
      seq_len: { type: 'int' },
      dtypes: { type: 'texts' },
      shapes: { type: 'intLists' },
    },
  },
  MP_TOKENS: {
    value: 'mp.tokens',
    since: '0.5.3',
    by: 'MP server, before the writes of those chunks, while anybody subscribes',
    session: 'always',
    fields: {
      chunk_hashes: { type: 'hashes' },
      token_chunks: { type: 'intLists' },
      token_offsets: { type: 'ints', since: '0.5.4' },
      parent_hashes: { type: 'hashesOrNil', since: '0.5.6' },
    },
  },
  MP_TRANSFER_PHASE_SAMPLES: {
    value: 'mp.transfer.phase_samples',
    since: '0.5.5',
    by: 'TransferPhaseSampler, at the end of each transfer',
    fields: {
      samples: { type: 'phaseSamples' },
      ended_transfer_key: { type: 'text' },
    },
  },
  MP_VLLM_BLOCK_ALLOCATION: {
    value: 'mp.vllm.block_allocation',
    by: 'MP server, as vLLM reports it',
    fields: {
      instance_id: { type: 'int' },
      model_name: { type: 'text' },
      records: { type: 'blockRecords' },
    },
  },
  MP_VLLM_END_SESSION: {
    value: 'mp.vllm.end_session',
    by: 'MP server, as vLLM reports it',
    fields: {
      request_id: { type: 'text' },
    },
  },
} as const;
