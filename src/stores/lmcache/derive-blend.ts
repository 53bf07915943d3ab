/** The blend server: what its events count, and how long its phases take. */
import type { BusEvent, EventName } from '../../engines/lmcache/contracts.ts';
import type { LmcacheHistogram } from '../../metrics/lmcache-histograms.ts';
import { amount, type DeriverDeps, type Handlers } from './deriver.ts';
import { Pairs } from './pairs.ts';

export function deriveBlend({ series }: DeriverDeps): Handlers {
  return {
    CB_LOOKUP_START: () => series.add('blend_lookup_requests', 1),
    CB_LOOKUP_END: ({ metadata }) => {
      const add = (
        name: Parameters<typeof series.add>[0],
        tokens: number | bigint | undefined,
      ): void => series.add(name, amount(tokens));
      add('blend_lookup_requested_tokens', metadata.requested_tokens);
      add('blend_lookup_hit_tokens', metadata.hit_tokens);
      add('blend_lookup_prefix_hit_tokens', metadata.prefix_hit_tokens);
      add('blend_lookup_non_prefix_hit_tokens', metadata.non_prefix_hit_tokens);
      add('blend_lookup_segmented_prefix_hit_tokens', metadata.segmented_prefix_hit_tokens);
      add('blend_lookup_fingerprint_hits', metadata.fingerprint_hits);
      add('blend_lookup_storage_hits', metadata.storage_hits);
      add('blend_lookup_stale_chunks', metadata.stale_chunks);
      if (metadata.no_gpu_context === true) series.add('blend_lookup_no_gpu_context_errors', 1);
    },
    CB_RETRIEVE_START: ({ metadata }) => {
      series.add('blend_retrieve_requests', 1);
      series.add('blend_retrieve_chunks', amount(metadata.num_chunks));
    },
    CB_RETRIEVE_END: ({ metadata }) => {
      if (metadata.success === false) series.add('blend_retrieve_failures', 1);
    },
    CB_RETRIEVE_NOOP: ({ metadata: { reason = 'unknown' } }) =>
      series.add('blend_retrieve_noops', 1, { reason }),
    CB_STORE_PRE_COMPUTED_START: () => series.add('blend_store_pre_computed_requests', 1),
    CB_STORE_PRE_COMPUTED_END: ({ metadata }) => {
      series.add('blend_store_pre_computed_chunks', amount(metadata.stored_chunks));
      if (metadata.success === false) series.add('blend_store_pre_computed_failures', 1);
    },
    CB_STORE_FINAL_START: () => series.add('blend_store_final_requests', 1),
    CB_STORE_FINAL_END: ({ metadata }) => {
      series.add('blend_store_final_chunks', amount(metadata.stored_chunks));
      if (metadata.success === false) series.add('blend_store_final_failures', 1);
    },
    CB_FINGERPRINTS_REGISTERED: ({ metadata }) =>
      series.add('blend_fingerprints_registered', amount(metadata.num_chunks)),
    CB_CHUNKS_EVICTED: ({ metadata }) =>
      series.add('blend_chunks_evicted', amount(metadata.num_chunks)),
    CB_FINGERPRINT_MATCH_END: ({ metadata }) =>
      series.add('blend_fingerprint_matches', amount(metadata.matches)),
    CB_COORDINATOR_MATCH_END: ({ metadata }) => {
      series.add('blend_coordinator_matches', amount(metadata.matches));
      if (metadata.timed_out === true) series.add('blend_coordinator_match_timeouts', 1);
    },
    CB_SPARSE_PREFETCH_START: ({ metadata }) =>
      series.add('blend_sparse_prefetch_l2_keys', amount(metadata.l2_keys)),
    CB_SPARSE_PREFETCH_END: ({ metadata }) =>
      series.add('blend_sparse_prefetch_found_keys', amount(metadata.found_keys)),
    CB_SCATTER_START: ({ metadata }) => {
      series.add('blend_scatter_tokens', amount(metadata.scattered_tokens));
      series.add('blend_scatter_prefix_chunks', amount(metadata.n_prefix));
      series.add('blend_scatter_shifted_chunks', amount(metadata.n_shifted));
      series.add('blend_scatter_dropped_chunks', amount(metadata.dropped));
    },
  };
}

type Phase = Extract<
  EventName,
  `CB_${'LOOKUP' | 'FINGERPRINT_MATCH' | 'PREFIX_LOOKUP' | 'COORDINATOR_MATCH' | 'SPARSE_PREFETCH' | 'RETRIEVE' | 'SCATTER'}_${'START' | 'END'}`
>;

/** By phase, session and worker: with tensor parallelism each worker has a retrieve of its own. */
export function deriveBlendPhases({ series, options, counts }: DeriverDeps): Handlers {
  const starts = new Pairs<null>(options);
  counts.pairs.push(starts);
  const begin =
    (phase: string) =>
    (event: BusEvent<Phase>): void =>
      starts.start(keyOf(phase, event), event.timestamp, null);
  const finish = (phase: string) => {
    const histogram = `blend_${phase}_duration` as LmcacheHistogram;
    return (event: BusEvent<Phase>): void => {
      const pair = starts.end(keyOf(phase, event), event.timestamp);
      // Between the clock of a GPU and that of a CPU an end may lie before its start.
      const milliseconds = pair === null ? -1 : pair.seconds * 1000;
      if (milliseconds >= 0) series.observe(histogram, milliseconds);
    };
  };
  return {
    CB_LOOKUP_START: begin('lookup'),
    CB_LOOKUP_END: finish('lookup'),
    CB_FINGERPRINT_MATCH_START: begin('fingerprint_match'),
    CB_FINGERPRINT_MATCH_END: finish('fingerprint_match'),
    CB_PREFIX_LOOKUP_START: begin('prefix_lookup'),
    CB_PREFIX_LOOKUP_END: finish('prefix_lookup'),
    CB_COORDINATOR_MATCH_START: begin('coordinator_match'),
    CB_COORDINATOR_MATCH_END: finish('coordinator_match'),
    CB_SPARSE_PREFETCH_START: begin('sparse_prefetch'),
    CB_SPARSE_PREFETCH_END: finish('sparse_prefetch'),
    CB_RETRIEVE_START: begin('retrieve'),
    CB_RETRIEVE_END: finish('retrieve'),
    CB_SCATTER_START: begin('scatter'),
    CB_SCATTER_END: finish('scatter'),
  };
}

function keyOf(phase: string, { sessionId, metadata }: BusEvent<Phase>): string {
  const worker = 'worker_id' in metadata ? metadata.worker_id : undefined;
  return `${phase}\0${sessionId}\0${worker ?? ''}`;
}
