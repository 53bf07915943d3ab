/**
 * The metadata contracts that LMCache publishes, row by row: event type, keys with their types, vocabularies.
 *
 * Source  LMCache, EVENTS.md of its event bus.
 */
export interface PublishedRow {
  readonly event: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly vocabularies?: Readonly<Record<string, readonly string[]>>;
}

export const PUBLISHED_ROWS: readonly PublishedRow[] = [
  { event: 'L1_READ_RESERVED', fields: { keys: 'list[ObjectKey]' } },
  { event: 'L1_READ_FINISHED', fields: { keys: 'list[ObjectKey]' } },
  { event: 'L1_WRITE_RESERVED', fields: { keys: 'list[ObjectKey]' } },
  { event: 'L1_WRITE_FINISHED', fields: { keys: 'list[ObjectKey]' } },
  { event: 'L1_WRITE_FINISHED_AND_READ_RESERVED', fields: { keys: 'list[ObjectKey]' } },
  { event: 'L1_KEYS_EVICTED', fields: { keys: 'list[ObjectKey]' } },
  {
    event: 'L1_EVICTION_LOOP_TICK',
    fields: { usage: 'float', watermark: 'float', triggered: 'bool' },
  },
  {
    event: 'L1_ALLOCATION_FAILED',
    fields: { during: 'str', keys: 'list[ObjectKey]' },
    vocabularies: { during: ['l1_store', 'l2_prefetch'] },
  },
  {
    event: 'L1_READ_FAILED',
    fields: { during: 'str', reason: 'str', keys: 'list[ObjectKey]' },
    vocabularies: { during: ['l2_store', 'l1_retrieve'], reason: ['not_found', 'write_locked'] },
  },
  {
    event: 'SM_READ_PREFETCHED',
    fields: { succeeded_keys: 'list[ObjectKey]', failed_keys: 'list[ObjectKey]' },
  },
  {
    event: 'SM_READ_PREFETCHED_FINISHED',
    fields: { succeeded_keys: 'list[ObjectKey]', failed_keys: 'list[ObjectKey]' },
  },
  {
    event: 'SM_WRITE_RESERVED',
    fields: { succeeded_keys: 'list[ObjectKey]', failed_keys: 'list[ObjectKey]' },
  },
  {
    event: 'SM_WRITE_FINISHED',
    fields: { succeeded_keys: 'list[ObjectKey]', failed_keys: 'list[ObjectKey]' },
  },
  {
    event: 'L2_STORE_SUBMITTED',
    fields: {
      adapter_index: 'int',
      task_id: 'int',
      l2_name: 'str',
      key_count: 'int',
      total_bytes: 'int',
      key_count_per_salt: 'dict[str, int]',
    },
  },
  {
    event: 'L2_STORE_COMPLETED',
    fields: {
      adapter_index: 'int',
      task_id: 'int',
      l2_name: 'str',
      bytes_transferred: 'int',
      succeeded_count: 'int',
      failed_count: 'int',
      key_count_per_salt: 'dict[str, int]',
    },
  },
  {
    event: 'L2_PREFETCH_LOOKUP_SUBMITTED',
    fields: {
      request_id: 'int',
      key_count: 'int',
      adapter_count: 'int',
      key_count_per_salt: 'dict[str, int]',
    },
  },
  { event: 'L2_PREFETCH_LOOKUP_COMPLETED', fields: { request_id: 'int', prefix_hit_count: 'int' } },
  {
    event: 'L2_PREFETCH_LOAD_SUBMITTED',
    fields: {
      request_id: 'int',
      key_count: 'int',
      adapter_count: 'int',
      key_count_per_salt: 'dict[str, int]',
    },
  },
  {
    event: 'L2_PREFETCH_LOAD_COMPLETED',
    fields: {
      request_id: 'int',
      loaded_count: 'int',
      failed_count: 'int',
      key_count_per_salt: 'dict[str, int]',
    },
  },
  {
    event: 'L2_LOAD_TASK_SUBMITTED',
    fields: {
      request_id: 'int',
      adapter_index: 'int',
      task_id: 'int',
      l2_name: 'str',
      key_count: 'int',
      total_bytes: 'int',
    },
  },
  {
    event: 'L2_LOAD_TASK_COMPLETED',
    fields: { request_id: 'int', adapter_index: 'int', task_id: 'int', l2_name: 'str' },
  },
  { event: 'L2_KEYS_EVICTED', fields: { key_count: 'int', key_count_per_salt: 'dict[str, int]' } },
  {
    event: 'L2_PREFETCH_FAILED',
    fields: { reason: 'str', keys: 'list[ObjectKey]' },
    vocabularies: { reason: ['l1_oom', 'not_found'] },
  },
  { event: 'TIMEOUT_RAISED', fields: { message: 'str', exception_type: 'str', stacktrace: 'str' } },
  { event: 'MP_REQUEST_START', fields: {} },
  { event: 'MP_STORE_SUBMITTED', fields: { device: 'str' } },
  { event: 'MP_RETRIEVE_SUBMITTED', fields: { device: 'str' } },
  { event: 'MP_REQUEST_END', fields: {} },
  { event: 'MP_STORE_START', fields: { device: 'str', engine_id: 'int', model_name: 'str' } },
  {
    event: 'MP_STORE_END',
    fields: {
      device: 'str',
      stored_count: 'int',
      engine_id: 'int',
      model_name: 'str',
      total_bytes: 'int',
    },
  },
  { event: 'MP_RETRIEVE_START', fields: { device: 'str', engine_id: 'int', model_name: 'str' } },
  {
    event: 'MP_RETRIEVE_END',
    fields: {
      device: 'str',
      retrieved_count: 'int',
      engine_id: 'int',
      model_name: 'str',
      cache_salt: 'str',
      total_bytes: 'int',
    },
  },
  { event: 'MP_LOOKUP_PREFETCH_START', fields: {} },
  {
    event: 'MP_LOOKUP_PREFETCH_END',
    fields: {
      found_count: 'int',
      requested_tokens: 'int',
      hit_tokens: 'int',
      model_name: 'str',
      cache_salt: 'str',
    },
  },
  {
    event: 'MP_LOOKUP',
    fields: {
      request_id: 'str',
      chunk_hashes: 'list[str]',
      model_name: 'str',
      chunk_size: 'int',
      seq_len: 'int',
      dtypes: 'list[str]',
      shapes: 'list[list[int]]',
    },
  },
  {
    event: 'MP_VLLM_BLOCK_ALLOCATION',
    fields: { instance_id: 'int', model_name: 'str', records: 'list[BlockAllocationRecord]' },
  },
  { event: 'MP_VLLM_END_SESSION', fields: { request_id: 'str' } },
  { event: 'TRACE_CALL', fields: { qualname: 'str', args: 'dict[str, Any]' } },
  { event: 'CB_REQUEST_START', fields: {} },
  { event: 'CB_STORE_PRE_COMPUTED_SUBMITTED', fields: { instance_id: 'int' } },
  { event: 'CB_RETRIEVE_SUBMITTED', fields: { instance_id: 'int' } },
  { event: 'CB_STORE_FINAL_SUBMITTED', fields: { instance_id: 'int' } },
  { event: 'CB_REQUEST_END', fields: {} },
  { event: 'CB_LOOKUP_START', fields: { num_tokens: 'int' } },
  {
    event: 'CB_LOOKUP_END',
    fields: {
      num_tokens: 'int',
      requested_tokens: 'int',
      hit_tokens: 'int',
      fingerprint_hits: 'int',
      storage_hits: 'int',
      stale_chunks: 'int',
      no_gpu_context: 'bool',
    },
  },
  { event: 'CB_STORE_PRE_COMPUTED_START', fields: { instance_id: 'int', num_tokens: 'int' } },
  {
    event: 'CB_STORE_PRE_COMPUTED_END',
    fields: { instance_id: 'int', num_tokens: 'int', stored_chunks: 'int', success: 'bool' },
  },
  { event: 'CB_RETRIEVE_START', fields: { instance_id: 'int', num_chunks: 'int' } },
  { event: 'CB_RETRIEVE_END', fields: { instance_id: 'int', num_chunks: 'int', success: 'bool' } },
  { event: 'CB_STORE_FINAL_START', fields: { instance_id: 'int', num_tokens: 'int' } },
  {
    event: 'CB_STORE_FINAL_END',
    fields: { instance_id: 'int', num_tokens: 'int', stored_chunks: 'int', success: 'bool' },
  },
  { event: 'CB_FINGERPRINTS_REGISTERED', fields: { num_chunks: 'int', num_tokens: 'int' } },
  { event: 'CB_CHUNKS_EVICTED', fields: { num_chunks: 'int' } },
];
