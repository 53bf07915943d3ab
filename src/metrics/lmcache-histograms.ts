/** Histograms of LMCache. Columns as in `lmcache-families.ts`. */
export const LMCACHE_HISTOGRAMS = {
  blend_coordinator_match_duration: [
    'lmcache_blend_coordinator_match_duration_milliseconds',
    'lmcache.blend',
    'Coordinator match',
  ],
  blend_fingerprint_match_duration: [
    'lmcache_blend_fingerprint_match_duration_milliseconds',
    'lmcache.blend',
    'Match of the local fingerprints',
  ],
  blend_lookup_duration: [
    'lmcache_blend_lookup_duration_milliseconds',
    'lmcache.blend',
    'Lookup, polls included',
  ],
  blend_prefix_lookup_duration: [
    'lmcache_blend_prefix_lookup_duration_milliseconds',
    'lmcache.blend',
    'Lookup of the prefix',
  ],
  blend_retrieve_duration: [
    'lmcache_blend_retrieve_duration_milliseconds',
    'lmcache.blend',
    'Retrieve, in GPU time',
  ],
  blend_scatter_duration: [
    'lmcache_blend_scatter_duration_milliseconds',
    'lmcache.blend',
    'Write into the paged cache, in GPU time',
  ],
  blend_sparse_prefetch_duration: [
    'lmcache_blend_sparse_prefetch_duration_milliseconds',
    'lmcache.blend',
    'Sparse prefetch',
  ],
  l0_block_idle_before_evict: [
    'lmcache_mp_l0_block_idle_before_evict_seconds',
    'lmcache.l0',
    'Last use of a GPU block to its eviction',
  ],
  l0_block_lifetime: [
    'lmcache_mp_l0_block_lifetime_seconds',
    'lmcache.l0',
    'Allocation of a GPU block to its eviction',
  ],
  l0_block_reuse_gap: [
    'lmcache_mp_l0_block_reuse_gap_seconds',
    'lmcache.l0',
    'Time between two uses of a GPU block',
  ],
  l0_l1_load_throughput: [
    'lmcache_mp_l0_l1_load_throughput_GB_per_second',
    'lmcache_mp.perf',
    'L1 to GPU, a retrieve',
  ],
  l0_l1_store_throughput: [
    'lmcache_mp_l0_l1_store_throughput_GB_per_second',
    'lmcache_mp.perf',
    'GPU to L1, a store',
  ],
  l1_chunk_evict_reuse_gap: [
    'lmcache_mp_l1_chunk_evict_reuse_gap_seconds',
    'lmcache.l1',
    'Eviction of a chunk to its next write',
  ],
  l1_chunk_idle_before_evict: [
    'lmcache_mp_l1_chunk_idle_before_evict_seconds',
    'lmcache.l1',
    'Last use of a chunk in L1 to its eviction',
  ],
  l1_chunk_lifetime: [
    'lmcache_mp_l1_chunk_lifetime_seconds',
    'lmcache.l1',
    'First write of a chunk to L1 to its eviction',
  ],
  l1_chunk_reuse_gap: [
    'lmcache_mp_l1_chunk_reuse_gap_seconds',
    'lmcache.l1',
    'Time between two uses of a chunk in L1',
  ],
  l2_load_throughput: [
    'lmcache_mp_l2_load_throughput_GB_per_second',
    'lmcache_mp.perf',
    'L2 to L1, a load task from submission to end',
  ],
  l2_store_throughput: [
    'lmcache_mp_l2_store_throughput_GB_per_second',
    'lmcache_mp.perf',
    'L1 to L2, a store task from submission to end',
  ],
  real_reuse_gap: [
    'lmcache_mp_real_reuse_gap_seconds',
    'lmcache.sm',
    'Last use of a chunk to its next read',
  ],
  real_reuse_gap_objects: [
    'lmcache_mp_real_reuse_gap_objects',
    'lmcache.sm',
    'The same, in uses of chunks of that salt',
  ],
  transfer_staging_throughput: [
    'lmcache_mp_transfer_staging_throughput_GB_per_second',
    'lmcache_mp.perf',
    'Host to device or back, a staging section',
  ],
} as const;
export type LmcacheHistogram = keyof typeof LMCACHE_HISTOGRAMS;

/** OpenTelemetry's default bounds. */
const DEFAULT_BOUNDS = [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];
const LIFECYCLE_BOUNDS_S = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400];
/** Longest wait for the re-use of an evicted chunk; longer ones count as this. */
export const MAX_EVICT_REUSE_S = 300;

/** Since 0.5.5 the lives of L1's chunks have bounds of their own. */
export function boundsOf(
  histogram: LmcacheHistogram,
  hasLifecycleBounds: boolean,
): readonly number[] {
  if (!hasLifecycleBounds || !histogram.startsWith('l1_chunk_')) return DEFAULT_BOUNDS;
  if (histogram !== 'l1_chunk_evict_reuse_gap') return LIFECYCLE_BOUNDS_S;
  return LIFECYCLE_BOUNDS_S.filter((bound) => bound <= MAX_EVICT_REUSE_S);
}
