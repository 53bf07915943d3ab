/** Settings of router recovery: how routers ask this relay for what they missed. */
import { MAX_PORT } from './addresses.ts';
import { choice, integer, ipAddress } from './kinds.ts';
import type { SettingRows } from './setting.ts';

const REQUEST_PLANES = ['tcp', 'nats', 'none'] as const;
export type RequestPlane = (typeof REQUEST_PLANES)[number];

const CODECS = ['msgpack', 'json'] as const;
export type RequestPlaneCodec = (typeof CODECS)[number];

export interface RecoverySettings {
  readonly requestPlane: RequestPlane;
  readonly requestPlaneCodec: RequestPlaneCodec;
  /** Null: routers of this host alone can ask. Brackets of IPv6 are taken off. */
  readonly tcpRpcHost: string | null;
  /** 0: a free one. */
  readonly tcpRpcPort: number;
  readonly recoveryMaxClients: number;
  readonly recoveryIdleMs: number;
  readonly recoveryMaxAnswers: number;
  /** 0: output never waits. */
  readonly outputHoldMs: number;
  /** 0: never. */
  readonly resyncQuietMs: number;
}

export const recoverySettings: SettingRows<RecoverySettings> = {
  requestPlane: {
    flag: '--request-plane',
    environment: 'DYN_REQUEST_PLANE',
    kind: choice(...REQUEST_PLANES),
    fallback: 'tcp',
    help: 'How routers ask for events they missed: over TCP, over NATS, or not at all',
    remedy: 'Give the request plane that the routers use',
  },
  requestPlaneCodec: {
    flag: null,
    environment: 'DYN_REQUEST_PLANE_CODEC',
    kind: choice(...CODECS),
    fallback: 'msgpack',
    help: 'Codec of their questions and of the answers',
    remedy: 'Leave it out: every router takes msgpack',
  },
  tcpRpcHost: {
    flag: null,
    environment: 'DYN_TCP_RPC_HOST',
    kind: ipAddress,
    fallback: null,
    fallbackNote: '127.0.0.1, for routers of this host',
    help: 'Address at which routers reach the TCP request plane, which then listens on all addresses',
    remedy: 'Give the address of this host or pod, not its name: routers look up no names',
  },
  tcpRpcPort: {
    flag: null,
    environment: 'DYN_TCP_RPC_PORT',
    kind: integer(0, MAX_PORT, 'PORT'),
    fallback: '0',
    help: 'Port of the TCP request plane; 0: a free one',
    remedy: 'Give a port that routers reach, or leave it out',
  },
  recoveryMaxClients: {
    flag: '--recovery-max-clients',
    environment: 'KVRELAY_RECOVERY_MAX_CLIENTS',
    kind: integer(1, 65_536, 'CLIENTS'),
    fallback: '256',
    help: 'Connections of routers to the TCP request plane; above it those go first that never asked',
    remedy: 'Give more than there are routers',
  },
  recoveryIdleMs: {
    flag: '--recovery-idle-ms',
    environment: 'KVRELAY_RECOVERY_IDLE_MS',
    kind: integer(1000, 86_400_000, 'MS'),
    fallback: '1800000',
    help: 'Time without a query after which such a connection is closed',
    remedy: 'Give a time that routers may be quiet for; they connect again when they ask',
  },
  recoveryMaxAnswers: {
    flag: '--recovery-max-answers',
    environment: 'KVRELAY_RECOVERY_MAX_ANSWERS',
    kind: integer(1, 65_536, 'ANSWERS'),
    fallback: '512',
    help: 'Queries answered at a time, 8 dumps among them; further ones are told to come later',
    remedy: 'Give at least the routers times the ranks, as all ask when the relay starts',
  },
  outputHoldMs: {
    flag: '--output-hold-ms',
    environment: 'KVRELAY_OUTPUT_HOLD_MS',
    kind: integer(0, 2000, 'MS'),
    fallback: '2000',
    help: 'Longest time that events wait for an answer on its way to a router; 0: none',
    remedy: 'Leave it out: events wait only where a router would lose them',
  },
  resyncQuietMs: {
    flag: '--resync-quiet-ms',
    environment: 'KVRELAY_RESYNC_QUIET_MS',
    kind: integer(0, 3_600_000, 'MS'),
    fallback: '30000',
    help: 'Quiet after queries that met losses, before the source is announced anew; 0: never',
    remedy: 'Give the milliseconds after which routers should take a fresh dump',
  },
};

/** Whether there is a connection to NATS, for events or for queries. */
export function usesNats(values: {
  readonly eventPlane: string;
  readonly requestPlane: RequestPlane;
  readonly indexer: boolean;
}): boolean {
  return values.eventPlane === 'nats' || (values.requestPlane === 'nats' && values.indexer);
}
