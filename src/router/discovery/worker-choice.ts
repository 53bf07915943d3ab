/**
 * Which worker's events these are, by what discovery shows, and whether somebody else claims it too.
 *
 * Pure: sets in, a decision out.
 */
import type { SourceClaim } from '../../protocol/discovery-records.ts';

export type WorkerChoice =
  | { readonly kind: 'found'; readonly workerId: bigint }
  /** Nobody serves the endpoint. */
  | { readonly kind: 'missing' }
  /** The one worker there is has a source already, which is not ours. */
  | { readonly kind: 'claimed'; readonly workerId: bigint }
  /** Several, and nothing tells which of them this relay stands beside. */
  | { readonly kind: 'ambiguous'; readonly workerIds: readonly bigint[] };

export interface Sighting {
  /** The worker chosen before; null before the first choice. */
  readonly current: bigint | null;
  /** Workers that serve the endpoint. */
  readonly workerIds: readonly bigint[];
  /** Those of them with a source of somebody else for one of our ranks. */
  readonly claimed: ReadonlySet<bigint>;
}

/**
 * The worker chosen before is kept for as long as it is there. Otherwise one that nobody else claims is
 * taken where it is the only such one: among several workers each has a relay of its own, and its source
 * shows which is taken.
 */
export function chooseWorker({ current, workerIds, claimed }: Sighting): WorkerChoice {
  if (current !== null && workerIds.includes(current)) return { kind: 'found', workerId: current };
  const free = workerIds.filter((workerId) => !claimed.has(workerId));
  const [only] = free;
  if (only !== undefined) {
    if (free.length === 1) return { kind: 'found', workerId: only };
    return { kind: 'ambiguous', workerIds: free };
  }
  const [taken] = workerIds;
  // A successor has no source yet: whoever is claimed is another relay's worker.
  if (taken === undefined || current !== null) return { kind: 'missing' };
  if (workerIds.length === 1) return { kind: 'claimed', workerId: taken };
  return { kind: 'ambiguous', workerIds };
}

/** Sources of others for one of our ranks; `publisherIds` are ours, of now and of before. */
export function othersClaims(
  claims: readonly SourceClaim[],
  dpRanks: readonly number[],
  publisherIds: ReadonlySet<bigint>,
): SourceClaim[] {
  return claims.filter(
    ({ publisherId, dpRank }) => dpRanks.includes(dpRank) && !publisherIds.has(publisherId),
  );
}
