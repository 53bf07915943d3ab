/** Settings of discovery: where routers find this relay, and where it finds its worker. */
import { accountSettings } from './account-settings.ts';
import {
  choice,
  etcdServers,
  integer,
  literalHost,
  nonEmptyText,
  toggle,
  zmqBrokers,
} from './kinds.ts';
import type { SettingRows } from './setting.ts';

const DISCOVERIES = ['none', 'file', 'etcd'] as const;
export type DiscoveryKind = (typeof DISCOVERIES)[number];

const AMBIGUITY_POLICIES = ['withdraw', 'stay'] as const;
export type AmbiguityPolicy = (typeof AMBIGUITY_POLICIES)[number];

export interface DiscoverySettings {
  readonly discovery: DiscoveryKind;
  /** Null: Dynamo's default below the temporary directory. */
  readonly discoveryDir: string | null;
  readonly etcdEndpoints: readonly string[];
  readonly etcdAuthUsername: string | null;
  readonly etcdAuthPassword: string | null;
  readonly etcdAuthCa: string | null;
  readonly etcdAuthClientCert: string | null;
  readonly etcdAuthClientKey: string | null;
  /** Seconds. */
  readonly etcdLeaseTtl: number;
  readonly onAmbiguous: AmbiguityPolicy;
  /** Null: the address that is bound. */
  readonly eventPlaneHost: string | null;
  /** Addresses of the brokers' XSUB sockets; null: routers connect to this relay. */
  readonly zmqBroker: readonly string[] | null;
  readonly zmqBrokerEnabled: boolean;
}

const fromEnvironment = accountSettings('etcd');

export const discoverySettings: SettingRows<DiscoverySettings> = {
  discovery: {
    flag: '--discovery',
    environment: 'DYN_DISCOVERY_BACKEND',
    kind: choice(...DISCOVERIES),
    fallback: 'none',
    notYet: ['kubernetes', 'mem'],
    help: 'Registry in which routers find this relay, and it its worker',
    remedy: 'Give the one the router uses; with none, tell routers address and worker id yourself',
  },
  discoveryDir: {
    flag: '--discovery-dir',
    environment: 'DYN_FILE_KV',
    kind: nonEmptyText('DIR'),
    fallback: null,
    fallbackNote: 'dynamo_store_kv in the temporary directory',
    onlyWithDiscovery: 'file',
    help: 'Directory of the file registry, shared with worker and routers',
    remedy: 'Give the directory that worker and routers have in DYN_FILE_KV',
  },
  etcdEndpoints: {
    flag: '--etcd-endpoints',
    environment: 'ETCD_ENDPOINTS',
    kind: etcdServers,
    fallback: 'http://localhost:2379',
    onlyWithDiscovery: 'etcd',
    help: 'Servers of the etcd registry',
    remedy: 'Put user and password into ETCD_AUTH_USERNAME and ETCD_AUTH_PASSWORD',
  },
  etcdAuthUsername: fromEnvironment('ETCD_AUTH_USERNAME', 'User name for etcd'),
  etcdAuthPassword: { ...fromEnvironment('ETCD_AUTH_PASSWORD', 'Its password'), secret: true },
  etcdAuthCa: fromEnvironment(
    'ETCD_AUTH_CA',
    'Certificate authority of the https:// servers',
    'FILE',
  ),
  etcdAuthClientCert: fromEnvironment(
    'ETCD_AUTH_CLIENT_CERT',
    'Client certificate for the https:// servers',
    'FILE',
  ),
  etcdAuthClientKey: fromEnvironment('ETCD_AUTH_CLIENT_KEY', 'Its private key', 'FILE'),
  etcdLeaseTtl: {
    flag: null,
    environment: 'ETCD_LEASE_TTL',
    kind: integer(2, 86_400, 'SECONDS'),
    fallback: '30',
    help: 'How long the records in etcd outlive a relay that has died',
    remedy: 'Give the seconds after which routers may forget a dead relay',
  },
  onAmbiguous: {
    flag: '--on-ambiguous',
    environment: 'KVRELAY_ON_AMBIGUOUS',
    kind: choice(...AMBIGUITY_POLICIES),
    fallback: 'withdraw',
    onlyWithDiscovery: 'any',
    help: 'Another source for our worker and rank: withdraw ours until it is gone, or let both stand',
    remedy: 'Give withdraw: of two sources for one rank routers follow neither',
  },
  eventPlaneHost: {
    flag: null,
    environment: 'DYN_EVENT_PLANE_HOST',
    kind: literalHost,
    fallback: null,
    help: 'Address under which routers reach the ZMQ plane; a loopback bind then becomes a wildcard',
    remedy: 'Give the IP address of this host or pod',
  },
  zmqBroker: {
    flag: '--zmq-broker',
    environment: 'DYN_ZMQ_BROKER_URL',
    kind: zmqBrokers,
    fallback: null,
    onlyOnPlane: 'zmq',
    help: 'Brokers that the ZMQ plane publishes to, instead of binding a socket for routers',
    remedy: 'Give the same text that the routers have',
  },
  zmqBrokerEnabled: {
    flag: null,
    environment: 'DYN_ZMQ_BROKER_ENABLED',
    kind: toggle,
    fallback: 'off',
    help: 'Asks for a broker; its address has to be given with it',
    remedy: 'Set DYN_ZMQ_BROKER_URL to the address of the broker',
  },
};
