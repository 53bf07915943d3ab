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
};

/** Whether there is a connection to NATS, for events or for queries. */
export function usesNats(values: {
  readonly eventPlane: string;
  readonly requestPlane: RequestPlane;
  readonly indexer: boolean;
}): boolean {
  return values.eventPlane === 'nats' || (values.requestPlane === 'nats' && values.indexer);
}
