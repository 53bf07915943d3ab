/**
 * What the objects of LMCache's coordinator batches are called, so that its event stream's (`l1`) stand apart.
 *
 * backend_id  `server:ID` of the server whose own they are; `shared:TIER/BACKEND`, such as `shared:l2/s3`, of a
 *             pool that several servers mount
 * tenant_id   MODEL, or MODEL@SALT where there is a salt: neither may hold an `@`
 * object_key  the chunk's hash in lower-case hex. Ranks and object groups are holders of one object, which goes
 *             with its last one
 * medium      TIER/BACKEND, such as `l1/dram`
 */
import type { ObjectScope } from '../objects/object-change.ts';

/** `source` of all objects of LMCache. */
export const LMCACHE = 'lmcache';

const SERVER_PREFIX = 'server:';
const POOL_PREFIX = 'shared:';

export type LmcacheTier = 'l1' | 'l2';

export function mediumOf(tier: LmcacheTier, backend: string): string {
  return `${tier}/${backend}`;
}

/** `instanceId` null: of the pool that stands behind `medium`. */
export function backendOf(instanceId: string | null, medium: string): string {
  return instanceId === null ? `${POOL_PREFIX}${medium}` : `${SERVER_PREFIX}${instanceId}`;
}

export function tenantOf(modelName: string, salt: string): string {
  return salt === '' ? modelName : `${modelName}@${salt}`;
}

/** Coordinator batches tell of the objects in such a scope. */
export function isOfBatches({ source, backendId }: ObjectScope): boolean {
  if (source !== LMCACHE) return false;
  return backendId.startsWith(SERVER_PREFIX) || backendId.startsWith(POOL_PREFIX);
}
