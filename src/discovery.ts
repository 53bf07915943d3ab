/** Discovery and the relay's presence in it, as the configuration asks for. */
import { hostname } from 'node:os';
import type { WorkerConfig } from './config/worker-config.ts';
import { messageOf } from './errors.ts';
import type { Warner } from './log.ts';
import type { DiscoveryMetrics } from './metrics/discovery-metrics.ts';
import type { Discovery, FaultListener } from './router/discovery/discovery.ts';
import { EtcdDiscovery } from './router/discovery/etcd-discovery.ts';
import { FileDiscovery, registryDirectory } from './router/discovery/file-discovery.ts';
import { NoneDiscovery } from './router/discovery/none-discovery.ts';
import type { PresentLoad } from './router/load/load-announcer.ts';
import { Presence } from './router/presence.ts';
import type { PresentSource } from './router/rank-presence.ts';
import type { RecoveryEndpoint } from './router/recovery-endpoint.ts';

export interface PresenceTools {
  /** Null: routers cannot ask, and the sources are live-only. */
  readonly recovery: RecoveryEndpoint | null;
  /** Null where no load is published. */
  readonly load: PresentLoad | null;
  readonly metrics: DiscoveryMetrics;
  readonly warner: Pick<Warner, 'warn'>;
  readonly onWorker: (workerId: bigint | null) => void;
}

export function createPresence(
  config: WorkerConfig,
  sources: readonly PresentSource[],
  tools: PresenceTools,
): Presence {
  const { namespace, component, endpoint, workerId, onAmbiguous, blockSize } = config;
  return new Presence({
    discovery:
      sources.length === 0
        ? new NoneDiscovery()
        : createDiscovery(config, tools.metrics, tools.warner),
    endpoint: { namespace, component, endpoint },
    workerId,
    onAmbiguous,
    blockSize,
    host: hostname(),
    sources,
    ...tools,
  });
}

function createDiscovery(
  config: WorkerConfig,
  metrics: DiscoveryMetrics,
  warner: Pick<Warner, 'warn'>,
): Discovery {
  const onFault: FaultListener = (fault, error) => {
    metrics.faults[fault]++;
    const fields = { discovery: config.discovery, reason: messageOf(error) };
    warner.warn(`discovery_${fault}`, fields, 'discovery does not do what it should');
  };
  if (config.discovery === 'none') return new NoneDiscovery();
  if (config.discovery === 'etcd') {
    return new EtcdDiscovery({ access: config, leaseTtlSeconds: config.etcdLeaseTtl, onFault });
  }
  return new FileDiscovery({ directory: registryDirectory(config.discoveryDir), onFault });
}
