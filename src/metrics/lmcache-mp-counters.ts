/** Counters of LMCache's multiprocess server; `l2_prefetch_hit` is older than 0.5.6. Columns as in `lmcache-families.ts`. */
export const LMCACHE_MP_COUNTERS = {
  l1_allocation_failure: [
    'lmcache_mp_l1_allocation_failure_chunks_total',
    'lmcache_mp.health',
    'Chunks that found no room in L1',
  ],
  l1_evicted: ['lmcache_mp_l1_evicted_chunks_total', 'lmcache.l1', 'Chunks evicted from L1'],
  l1_eviction_loop_ticks: [
    'lmcache_mp_l1_eviction_loop_ticks_total',
    'lmcache.l1',
    "Rounds of L1's eviction loop",
  ],
  l1_eviction_loop_triggered: [
    'lmcache_mp_l1_eviction_loop_triggered_total',
    'lmcache.l1',
    "Rounds of L1's eviction loop that evicted",
  ],
  l1_read: ['lmcache_mp_l1_read_chunks_total', 'lmcache.l1', 'Chunks read from L1'],
  l1_read_failure: [
    'lmcache_mp_l1_read_failure_chunks_total',
    'lmcache_mp.health',
    'Chunks that could not be read from L1 although a lookup had found them',
  ],
  l1_write: ['lmcache_mp_l1_write_chunks_total', 'lmcache.l1', 'Chunks written to L1'],
  l2_evicted_objects: [
    'lmcache_mp_l2_evicted_objects_chunks_total',
    'lmcache.l2',
    'Chunks evicted from L2',
  ],
  l2_load_completed: [
    'lmcache_mp_l2_load_completed_requests_total',
    'lmcache.l2',
    'Load tasks of L2 adapters that ended',
  ],
  l2_prefetch_failure: [
    'lmcache_mp_l2_prefetch_failure_chunks_total',
    'lmcache_mp.health',
    'Chunks that L2 had and that did not come into L1',
  ],
  l2_prefetch_hit: [
    'lmcache_mp_l2_prefetch_hit_chunks_total',
    'lmcache.l2',
    'Chunks of prefixes that a lookup found in L2',
  ],
  l2_prefetch_load_completed: [
    'lmcache_mp_l2_prefetch_load_completed_chunks_total',
    'lmcache.l2',
    'Chunks loaded from L2',
  ],
  l2_prefetch_load_submitted: [
    'lmcache_mp_l2_prefetch_load_submitted_requests_total',
    'lmcache.l2',
    'Load tasks handed to L2 adapters',
  ],
  l2_prefetch_load_submitted_objects: [
    'lmcache_mp_l2_prefetch_load_submitted_objects_chunks_total',
    'lmcache.l2',
    'Chunks to be loaded from L2',
  ],
  l2_prefetch_lookup: [
    'lmcache_mp_l2_prefetch_lookup_requests_total',
    'lmcache.l2',
    'Lookups in L2',
  ],
  l2_prefetch_lookup_objects: [
    'lmcache_mp_l2_prefetch_lookup_objects_chunks_total',
    'lmcache.l2',
    'Chunks looked up in L2',
  ],
  l2_store_completed: [
    'lmcache_mp_l2_store_completed_requests_total',
    'lmcache.l2',
    'Store tasks of L2 adapters that ended',
  ],
  l2_store_completed_objects: [
    'lmcache_mp_l2_store_completed_objects_chunks_total',
    'lmcache.l2',
    'Chunks stored in L2',
  ],
  l2_store_submitted: [
    'lmcache_mp_l2_store_submitted_requests_total',
    'lmcache.l2',
    'Store tasks handed to L2 adapters',
  ],
  l2_store_submitted_objects: [
    'lmcache_mp_l2_store_submitted_objects_chunks_total',
    'lmcache.l2',
    'Chunks to be stored in L2',
  ],
  lookup_early_exit: [
    'lmcache_mp_lookup_early_exit_requests_total',
    'lmcache.lookup',
    'Lookups that ended before the cache was asked, by reason',
  ],
  lookup_hit: [
    'lmcache_mp_lookup_hit_tokens_total',
    'lmcache.lookup',
    'Tokens of lookups found in L1 or L2',
  ],
  lookup_hit_l1: [
    'lmcache_mp_lookup_hit_l1_tokens_total',
    'lmcache.lookup',
    'Tokens of lookups that L1 can serve',
  ],
  lookup_hit_l1_keys: [
    'lmcache_mp_lookup_hit_l1_keys_total',
    'lmcache.lookup',
    'Keys of lookups that L1 had',
  ],
  lookup_hit_l2: [
    'lmcache_mp_lookup_hit_l2_tokens_total',
    'lmcache.lookup',
    'Tokens of lookups that L2 adds',
  ],
  lookup_hit_l2_keys: [
    'lmcache_mp_lookup_hit_l2_keys_total',
    'lmcache.lookup',
    'Keys of lookups loaded from L2',
  ],
  lookup_requested: [
    'lmcache_mp_lookup_requested_tokens_total',
    'lmcache.lookup',
    'Tokens of lookups, whole chunks only',
  ],
  lookups: ['lmcache_mp_lookups_requests_total', 'lmcache.lookup', 'Lookups'],
  num_chunks_loaded: [
    'lmcache_mp_num_chunks_loaded_total',
    'lmcache_mp.engine',
    'Chunks that retrieves brought into the engine',
  ],
  num_finished_retrieves: [
    'lmcache_mp_num_finished_retrieves_total',
    'lmcache_mp.transfer',
    'Retrieves that left the GPU stream',
  ],
  num_finished_stores: [
    'lmcache_mp_num_finished_stores_total',
    'lmcache_mp.transfer',
    'Stores that left the GPU stream',
  ],
  num_submitted_retrieves: [
    'lmcache_mp_num_submitted_retrieves_total',
    'lmcache_mp.transfer',
    'Retrieves handed to the GPU stream',
  ],
  num_submitted_stores: [
    'lmcache_mp_num_submitted_stores_total',
    'lmcache_mp.transfer',
    'Stores handed to the GPU stream',
  ],
  timeouts: ['lmcache_mp_timeouts_total', 'lmcache_mp.health', 'Time-outs, by exception'],
  transfer_phase_bytes: [
    'lmcache_mp_transfer_phase_bytes_total',
    'lmcache_mp.perf',
    'Bytes moved, by phase of the transfer',
  ],
  transfer_phase_elapsed: [
    'lmcache_mp_transfer_phase_elapsed_seconds_total',
    'lmcache_mp.perf',
    'Seconds of stream time, by phase of the transfer',
  ],
} as const;
