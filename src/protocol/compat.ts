/**
 * strict publishes byte for byte what Dynamo 1.6.1 publishes, its defects included. safe differs from it
 * in the ways named here and in no other; docs/compatibility.md has the reason, effect and test of each,
 * and a test holds the two lists equal.
 */
export type Compat = 'strict' | 'safe';

export const DIVERGENCES = [
  'lost-batches',
  'restart',
  'end-marker',
  'bad-event',
  'byte-hash',
  'unsupported-extra-key',
  'two-elements',
  'media',
  'chunk',
  'rank-routing',
  'split',
  'joined-messages',
  'resend',
  'heartbeat',
  'empty-store',
  'tier-namespaces',
  'ambiguous-forgotten',
  'locality-tail',
  'full-reports',
  'old-sglang',
  'store-event',
] as const;

export type Divergence = (typeof DIVERGENCES)[number];

/** Whether `safe` behaviour applies; every branch of the code names the divergence it makes. */
export function diverges(compat: Compat, _divergence: Divergence): boolean {
  return compat === 'safe';
}
