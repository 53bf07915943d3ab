/** The recovery service that the configuration asks for. */
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { messageOf } from './errors.ts';
import type { Warner } from './log.ts';
import { RecoveryService, type ServedRank } from './router/recovery/recovery-service.ts';

export interface RecoveryDeps {
  /** Null where neither plane uses NATS. */
  readonly nats: NatsConnection | null;
  readonly warner: Pick<Warner, 'warn'>;
  readonly rank: (dpRank: number) => ServedRank | null;
}

/** Null where routers cannot ask. */
export function createRecovery(config: WorkerConfig, deps: RecoveryDeps): RecoveryService | null {
  const { requestPlane, requestPlaneCodec, tcpRpcHost, tcpRpcPort, indexer } = config;
  if (requestPlane === 'none' || !indexer) return null;
  return new RecoveryService({
    requestPlane,
    codec: requestPlaneCodec,
    advertisedHost: tcpRpcHost,
    port: tcpRpcPort,
    limits: {
      maxClients: config.recoveryMaxClients,
      idleTimeoutMs: config.recoveryIdleMs,
      maxAnswers: config.recoveryMaxAnswers,
    },
    nats: deps.nats,
    rank: deps.rank,
    onError: (error) =>
      deps.warner.warn('recovery_error', { reason: messageOf(error) }, 'a router query failed'),
  });
}
