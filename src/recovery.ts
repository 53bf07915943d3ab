/** The recovery service that the configuration asks for. */
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { messageOf } from './errors.ts';
import type { Warner } from './log.ts';
import { RecoveryService, type ServedRank } from './router/recovery/recovery-service.ts';
import { readTcpTls } from './router/recovery/tcp-tls.ts';

export interface RecoveryDeps {
  /** Null where neither plane uses NATS. */
  readonly nats: NatsConnection | null;
  readonly warner: Pick<Warner, 'warn'>;
  readonly config: WorkerConfig;
}

/** A rank's relay, as queries need it. */
interface QueriedRank {
  readonly dpRank: number;
  /** Null where it has no index. */
  readonly served: ServedRank | null;
}

/** Null where routers cannot ask. */
export function createRecovery(
  ranks: readonly QueriedRank[],
  { config, nats, warner }: RecoveryDeps,
): RecoveryService | null {
  const { requestPlane, requestPlaneCodec, tcpRpcHost, tcpRpcPort, indexer } = config;
  if (requestPlane === 'none' || !indexer || ranks.length === 0) return null;
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
    nats,
    tls: readTcpTls(config),
    rank: (dpRank) => ranks.find((rank) => rank.dpRank === dpRank)?.served ?? null,
    onError: (error) =>
      warner.warn('recovery_error', { reason: messageOf(error) }, 'a router query failed'),
  });
}
