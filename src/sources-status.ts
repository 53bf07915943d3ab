/** What stands beside the engine, as `/api/status` shows it. */
import { coordinatorStatus } from './coordinator-status.ts';
import type { LmcacheSource } from './lmcache-source.ts';
import { lmcacheSourceStatus, lmcacheStatus } from './lmcache-status.ts';
import type { StatusSnapshot } from './status/status-source.ts';
import { objectsStatus, sourceStatuses } from './stores-status.ts';
import type { WorkerStores } from './worker-stores.ts';

export function sourcesStatus(
  stores: WorkerStores | null,
  lmcache: LmcacheSource | null,
): Pick<StatusSnapshot, 'sources' | 'objects' | 'lmcache' | 'lmcache_coordinator'> {
  const coordinator = stores?.coordinator ?? null;
  return {
    sources: [
      ...(stores === null ? [] : sourceStatuses(stores)),
      ...(lmcache === null ? [] : [lmcacheSourceStatus(lmcache)]),
    ],
    objects: stores && objectsStatus(stores),
    lmcache: lmcache && lmcacheStatus(lmcache),
    lmcache_coordinator: coordinator && coordinatorStatus(coordinator),
  };
}
