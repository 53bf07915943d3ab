/** Lookups of the multiprocess server: tokens asked for and found, by model and salt. */
import { amount, type DeriverDeps, type Handlers, labelsOf } from './deriver.ts';

export function deriveLookup({ series }: DeriverDeps): Handlers {
  return {
    MP_LOOKUP_PREFETCH_END: ({ metadata }) => {
      const { model_name, cache_salt, early_exit_reason } = metadata;
      const labels = labelsOf({ model_name, cache_salt });
      series.add('lookup_requested', amount(metadata.requested_tokens), labels);
      series.add('lookup_hit', amount(metadata.hit_tokens), labels);
      series.add('lookups', 1, labels);
      series.add('lookup_hit_l1', amount(metadata.l1_hit_tokens), labels);
      series.add('lookup_hit_l2', amount(metadata.l2_hit_tokens), labels);
      series.add('lookup_hit_l1_keys', amount(metadata.l1_hit_keys), labels);
      series.add('lookup_hit_l2_keys', amount(metadata.l2_hit_keys), labels);
      if (early_exit_reason)
        series.add('lookup_early_exit', 1, { ...labels, reason: early_exit_reason });
    },
  };
}
