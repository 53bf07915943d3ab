/** Counters of LMCache's blend server; those of its stores are older than 0.5.5. Columns as in `lmcache-families.ts`. */
export const LMCACHE_BLEND_COUNTERS = {
  blend_chunks_evicted: [
    'lmcache_blend_chunks_evicted_total',
    'lmcache.blend',
    'Chunks put out of the fingerprint table',
  ],
  blend_coordinator_match_timeouts: [
    'lmcache_blend_coordinator_match_timeouts_total',
    'lmcache.blend',
    'Coordinator matches given up at their deadline',
  ],
  blend_coordinator_matches: [
    'lmcache_blend_coordinator_matches_total',
    'lmcache.blend',
    'Segments that the coordinator found',
  ],
  blend_fingerprint_matches: [
    'lmcache_blend_fingerprint_matches_total',
    'lmcache.blend',
    'Chunks that the local fingerprints found',
  ],
  blend_fingerprints_registered: [
    'lmcache_blend_fingerprints_registered_total',
    'lmcache.blend',
    'Chunks put into the fingerprint table',
  ],
  blend_lookup_fingerprint_hits: [
    'lmcache_blend_lookup_fingerprint_hits_total',
    'lmcache.blend',
    'Chunks of lookups that matched a fingerprint',
  ],
  blend_lookup_hit_tokens: [
    'lmcache_blend_lookup_hit_tokens_total',
    'lmcache.blend',
    'Tokens of lookups that blending serves',
  ],
  blend_lookup_no_gpu_context_errors: [
    'lmcache_blend_lookup_no_gpu_context_errors_total',
    'lmcache.blend',
    'Lookups without a GPU context',
  ],
  blend_lookup_non_prefix_hit_tokens: [
    'lmcache_blend_lookup_non_prefix_hit_tokens_total',
    'lmcache.blend',
    'Tokens served from chunks behind a gap, moved',
  ],
  blend_lookup_prefix_hit_tokens: [
    'lmcache_blend_lookup_prefix_hit_tokens_total',
    'lmcache.blend',
    'Tokens served from the prefix',
  ],
  blend_lookup_requested_tokens: [
    'lmcache_blend_lookup_requested_tokens_total',
    'lmcache.blend',
    'Tokens of lookups, whole chunks only',
  ],
  blend_lookup_requests: ['lmcache_blend_lookup_requests_total', 'lmcache.blend', 'Lookups'],
  blend_lookup_segmented_prefix_hit_tokens: [
    'lmcache_blend_lookup_segmented_prefix_hit_tokens_total',
    'lmcache.blend',
    'Tokens served from chunks behind a gap, in place',
  ],
  blend_lookup_stale_chunks: [
    'lmcache_blend_lookup_stale_chunks_total',
    'lmcache.blend',
    'Fingerprint hits that storage does not have any more',
  ],
  blend_lookup_storage_hits: [
    'lmcache_blend_lookup_storage_hits_total',
    'lmcache.blend',
    'Chunks of lookups that storage has',
  ],
  blend_retrieve_chunks: [
    'lmcache_blend_retrieve_chunks_total',
    'lmcache.blend',
    'Chunks asked for by retrieves',
  ],
  blend_retrieve_failures: [
    'lmcache_blend_retrieve_failures_total',
    'lmcache.blend',
    'Retrieves that failed',
  ],
  blend_retrieve_noops: [
    'lmcache_blend_retrieve_noops_total',
    'lmcache.blend',
    'Retrieves that moved nothing, by reason',
  ],
  blend_retrieve_requests: ['lmcache_blend_retrieve_requests_total', 'lmcache.blend', 'Retrieves'],
  blend_scatter_dropped_chunks: [
    'lmcache_blend_scatter_dropped_chunks_total',
    'lmcache.blend',
    'Matched chunks without a slot',
  ],
  blend_scatter_prefix_chunks: [
    'lmcache_blend_scatter_prefix_chunks_total',
    'lmcache.blend',
    'Chunks written where they were stored',
  ],
  blend_scatter_shifted_chunks: [
    'lmcache_blend_scatter_shifted_chunks_total',
    'lmcache.blend',
    'Chunks written elsewhere, with new positions',
  ],
  blend_scatter_tokens: [
    'lmcache_blend_scatter_tokens_total',
    'lmcache.blend',
    'Tokens written into the paged cache',
  ],
  blend_sparse_prefetch_found_keys: [
    'lmcache_blend_sparse_prefetch_found_keys_total',
    'lmcache.blend',
    'Keys of sparse prefetches that came into L1',
  ],
  blend_sparse_prefetch_l2_keys: [
    'lmcache_blend_sparse_prefetch_l2_keys_total',
    'lmcache.blend',
    'Keys of sparse prefetches that had to come from L2',
  ],
  blend_store_final_chunks: [
    'lmcache_blend_store_final_chunks_total',
    'lmcache.blend',
    'Chunks of final stores',
  ],
  blend_store_final_failures: [
    'lmcache_blend_store_final_failures_total',
    'lmcache.blend',
    'Final stores that failed',
  ],
  blend_store_final_requests: [
    'lmcache_blend_store_final_requests_total',
    'lmcache.blend',
    'Final stores',
  ],
  blend_store_pre_computed_chunks: [
    'lmcache_blend_store_pre_computed_chunks_total',
    'lmcache.blend',
    'Chunks of stores ahead of use',
  ],
  blend_store_pre_computed_failures: [
    'lmcache_blend_store_pre_computed_failures_total',
    'lmcache.blend',
    'Stores ahead of use that failed',
  ],
  blend_store_pre_computed_requests: [
    'lmcache_blend_store_pre_computed_requests_total',
    'lmcache.blend',
    'Stores ahead of use',
  ],
} as const;
