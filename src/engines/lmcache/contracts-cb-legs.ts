/**
 * What the blend server publishes of the legs of a lookup, of the scatter, and of its fingerprint table.
 * Rows of the table in `contracts.ts`.
 */
export const CB_LEG_CONTRACTS = {
  CB_FINGERPRINTS_REGISTERED: {
    value: 'cb.fingerprints.registered',
    by: 'blend server',
    session: 'always',
    fields: {
      num_chunks: { type: 'int' },
      num_tokens: { type: 'int' },
    },
  },
  CB_CHUNKS_EVICTED: {
    value: 'cb.chunks.evicted',
    by: 'blend server',
    fields: {
      num_chunks: { type: 'int' },
    },
  },
  CB_FINGERPRINT_MATCH_START: {
    value: 'cb.fingerprint_match.start',
    by: 'blend server',
    session: 'always',
    fields: {},
  },
  CB_FINGERPRINT_MATCH_END: {
    value: 'cb.fingerprint_match.end',
    by: 'blend server',
    session: 'always',
    fields: {
      matches: { type: 'int' },
    },
  },
  CB_PREFIX_LOOKUP_START: {
    value: 'cb.prefix_lookup.start',
    by: 'blend server',
    session: 'always',
    fields: {},
  },
  CB_PREFIX_LOOKUP_END: {
    value: 'cb.prefix_lookup.end',
    by: 'blend server',
    session: 'always',
    fields: {
      prefix_chunks: { type: 'int' },
    },
  },
  CB_COORDINATOR_MATCH_START: {
    value: 'cb.coordinator_match.start',
    by: 'blend server',
    session: 'always',
    fields: {},
  },
  CB_COORDINATOR_MATCH_END: {
    value: 'cb.coordinator_match.end',
    by: 'blend server',
    session: 'always',
    fields: {
      matches: { type: 'int' },
      timed_out: { type: 'bool' },
    },
  },
  CB_SPARSE_PREFETCH_START: {
    value: 'cb.sparse_prefetch.start',
    by: 'blend server',
    session: 'always',
    fields: {
      n_chunks: { type: 'int' },
      world_size: { type: 'int' },
      n_keys: { type: 'int' },
      l2_keys: { type: 'int' },
    },
  },
  CB_SPARSE_PREFETCH_END: {
    value: 'cb.sparse_prefetch.end',
    by: 'blend server',
    session: 'always',
    fields: {
      found_keys: { type: 'int' },
      l2_keys: { type: 'int' },
    },
  },
  CB_SCATTER_START: {
    value: 'cb.scatter.start',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      scattered_tokens: { type: 'int' },
      n_prefix: { type: 'int' },
      n_shifted: { type: 'int' },
      dropped: { type: 'int' },
      worker_id: {
        type: 'int',
        since: '0.5.5',
        absent: {
          why: 'nil without a worker; the recorder of a GPU stream makes it the text None',
        },
      },
    },
  },
  CB_SCATTER_END: {
    value: 'cb.scatter.end',
    by: 'blend server, GPU callback',
    session: 'always',
    isOnStream: true,
    fields: {
      success: { type: 'bool', since: '0.5.5' },
      worker_id: {
        type: 'int',
        since: '0.5.5',
        absent: {
          why: 'nil without a worker; the recorder of a GPU stream makes it the text None',
        },
      },
    },
  },
  CB_RETRIEVE_NOOP: {
    value: 'cb.retrieve.noop',
    since: '0.5.5',
    by: 'blend server, when nothing was scattered',
    session: 'always',
    fields: {
      reason: { type: 'text' },
      dropped_matches: { type: 'int' },
    },
  },
} as const;
