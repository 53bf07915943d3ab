/** What `/metrics` reads of a worker's parts. */

import { chunkReading } from './chunks-status.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import { coordinatorReading } from './coordinator-status.ts';
import type { EngineSource } from './engine-source.ts';
import type { EventLoopLag } from './event-loop-lag.ts';
import type { LmcacheSource } from './lmcache-source.ts';
import { lmcacheNotices, lmcacheReading, lmcacheStoreReading } from './lmcache-status.ts';
import type { DiscoveryMetrics } from './metrics/discovery-metrics.ts';
import type { MetricsSource } from './metrics/metrics-source.ts';
import { RecoveryCounts } from './metrics/recovery-counts.ts';
import { degradedCodes } from './relay-degraded.ts';
import { planeReading } from './relay-status.ts';
import type { Presence } from './router/presence.ts';
import type { RecoveryService } from './router/recovery/recovery-service.ts';
import { objectStreamReading, storeReadings } from './stores-status.ts';
import { VERSION } from './version.ts';
import type { WorkerLoad } from './worker-load.ts';
import type { WorkerStores } from './worker-stores.ts';

export interface WorkerParts {
  readonly config: WorkerConfig;
  readonly sources: readonly EngineSource[];
  readonly presence: Presence;
  readonly discovery: DiscoveryMetrics;
  /** Null where routers cannot ask. */
  readonly recovery: RecoveryService | null;
  /** Null where no load is published. */
  readonly load: WorkerLoad | null;
  /** Null where no store is followed. */
  readonly stores: WorkerStores | null;
  /** Null without a bridge of LMCache. */
  readonly lmcache: LmcacheSource | null;
  readonly loopLag: EventLoopLag;
}

const NO_RECOVERY = new RecoveryCounts();

export function workerMetrics(parts: WorkerParts): MetricsSource {
  const { config, sources, presence, discovery, recovery, load, stores, lmcache, loopLag } = parts;
  const { namespace, component } = config;
  const relays = sources.flatMap((source) => source.relays);
  const workerIdHex = (): string => relays[0]?.workerId?.toString(16) ?? '';
  return {
    version: VERSION,
    labels: {
      namespace,
      component,
      get workerIdHex() {
        return workerIdHex();
      },
    },
    relays: () =>
      sources.flatMap(({ listener, relays: own }) =>
        own.map((relay) => ({
          dpRank: relay.dpRank,
          metrics: relay.metrics,
          engineConnected: listener.isConnected,
          degraded: [
            ...degradedCodes(relay, listener.isConnected),
            ...presence.notices(relay.dpRank).map(({ code }) => code),
            ...(stores?.isSuspect ? (['store_suspect'] as const) : []),
            ...(lmcache === null ? [] : lmcacheNotices(lmcache).map(({ code }) => code)),
          ],
        })),
      ),
    discovery,
    plane: () => planeReading(relays, stores?.plane ?? null),
    load: () => load?.metrics ?? null,
    recovery: () => recovery?.counts ?? NO_RECOVERY,
    stores: () => [
      ...(stores === null ? [] : storeReadings(stores)),
      ...(lmcache === null ? [] : [lmcacheStoreReading(lmcache)]),
    ],
    chunks: () => {
      const chunks = stores?.chunks ?? null;
      return chunks && chunkReading(chunks);
    },
    lmcache: () => lmcache && lmcacheReading(lmcache),
    coordinator: () => {
      const coordinator = stores?.coordinator ?? null;
      return coordinator && coordinatorReading(coordinator);
    },
    objectStream: () => stores && objectStreamReading(stores),
    eventLoopLagSeconds: () => loopLag.takeSeconds(),
  };
}
