/** The coordinator endpoint of LMCache's MP servers, as `--lmcache-coordinator-…` has it. */
import type { WorkerConfig } from './config/worker-config.ts';
import type { Warner } from './log.ts';
import { CoordinatorSource } from './stores/lmcache/coordinator/coordinator-source.ts';
import type { ObjectState } from './stores/objects/object-state.ts';
import type { ChunkPlacements } from './stores/placement/chunk-placements.ts';

export interface WorkerCoordinatorDeps {
  readonly config: WorkerConfig;
  readonly warner: Pick<Warner, 'warn'>;
}

/** Null where nobody is listened to. */
export function createCoordinator(
  { config, warner }: WorkerCoordinatorDeps,
  state: ObjectState,
  placements: ChunkPlacements | null,
): CoordinatorSource | null {
  const { lmcacheCoordinatorListen: listen, lmcacheInstance: instanceId } = config;
  const { lmcacheModel: model } = config;
  if (listen === null) return null;
  return new CoordinatorSource({
    ...listen,
    forward: config.lmcacheCoordinatorForward,
    maxBodyBytes: config.lmcacheCoordinatorMaxBytes,
    maxHolders: config.lmcacheMaxKeys,
    instanceTimeoutSeconds: config.lmcacheInstanceTimeoutS,
    state,
    reach:
      placements !== null && instanceId !== null && model !== null
        ? { placements, instanceId, model }
        : null,
    warner,
  });
}
