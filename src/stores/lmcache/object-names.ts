/**
 * What the objects of LMCache are called, whichever of its ways out tells of them.
 *
 * backend_id  the server whose own they are, by its instance id; `shared:` with tier and backend, such as
 *             `shared:l2/s3`, for a pool that several servers mount
 * tenant_id   the cache salt
 * object_key  MODEL@HASH, the chunk's hash in lower-case hex. Ranks and object groups are holders of one
 *             object, which goes with its last one
 * medium      TIER/BACKEND, such as `l1/dram`
 */
import { POOL_PREFIX } from '../../engines/lmcache/cache-batch.ts';
import type { ObjectScope } from '../objects/object-change.ts';

export const LMCACHE = 'lmcache';

export type LmcacheTier = 'l1' | 'l2';

export function mediumOf(tier: LmcacheTier, backend: string): string {
  return `${tier}/${backend}`;
}

/** A model's name has no `@`. */
export function objectKeyOf(modelName: string, hashHex: string): string {
  return `${modelName}@${hashHex}`;
}

/** `instanceId` null: of the pool that stands behind `medium`. */
export function scopeOf(instanceId: string | null, medium: string, salt: string): ObjectScope {
  const backendId = instanceId ?? `${POOL_PREFIX}${medium}`;
  return { source: LMCACHE, backendId, tenantId: salt };
}
