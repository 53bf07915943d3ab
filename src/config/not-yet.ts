/**
 * Settings that are documented but not built yet. Whoever gives one expects something to happen, so
 * the start ends; only the values that ask for what already happens pass.
 */
import { ConfigError } from '../errors.ts';
import { isOffText, listed } from './kinds.ts';

export interface NotYet {
  readonly flag: `--${string}` | null;
  readonly environment: string | null;
  /** Values that name today's behaviour. */
  readonly accepted: readonly string[];
  readonly remedy: string;
}

const GAPS = 'Missing engine batches are counted in kvrelay_engine_missing_batches_total';
const RESTARTS = 'Clear the router when the engine restarts';
const BROKERLESS = 'Routers connect to --plane-endpoint, or use --event-plane nats';
const NO_DISCOVERY = 'Tell routers the address and the worker id yourself';
const NO_QUERIES = 'Routers cannot query this relay yet; ask its HTTP API';
const NO_STORES = 'Only engine events are relayed';

export const notYetSettings: readonly NotYet[] = [
  notYet('--replay-endpoint', GAPS),
  notYet('--zmq-broker', BROKERLESS, { environment: 'DYN_ZMQ_BROKER_URL' }),
  notYet(null, BROKERLESS, { environment: 'DYN_ZMQ_BROKER_ENABLED', accepted: ['off'] }),
  notYet(null, 'Set it to tcp', { environment: 'DYN_RESPONSE_PLANE', accepted: ['tcp'] }),
  notYet('--discovery', NO_DISCOVERY, { environment: null, accepted: ['none'] }),
  notYet('--discovery-dir', NO_DISCOVERY, { environment: null }),
  notYet('--etcd-endpoints', NO_DISCOVERY, { environment: null }),
  notYet('--request-plane', NO_QUERIES, { environment: null, accepted: ['none'] }),
  notYet('--on-ambiguous', 'Run one relay a worker and rank'),
  notYet('--on-engine-restart', RESTARTS),
  notYet('--on-engine-gap', GAPS),
  notYet('--clear-on-stop', 'Leave it out', { accepted: ['off'] }),
  notYet('--engine-metrics', 'No worker-load events are published'),
  notYet('--mooncake-endpoint', NO_STORES),
  notYet('--mooncake-master', NO_STORES),
  notYet('--mooncake-key-pattern', NO_STORES),
  notYet('--mooncake-tier', NO_STORES),
  notYet('--mooncake-reconcile-seconds', NO_STORES),
  notYet('--lmcache-stream', NO_STORES),
  notYet('--lmcache-coordinator-listen', NO_STORES),
  notYet('--lmcache-coordinator-forward', NO_STORES),
  notYet('--lmcache-bridge', NO_STORES),
  notYet('--lmcache-replay', NO_STORES),
  notYet('--lmcache-l1-tier', NO_STORES),
  notYet('--lmcache-l2-tier', NO_STORES),
];

function notYet(
  flag: NotYet['flag'],
  remedy: string,
  options: { environment?: string | null; accepted?: readonly string[] } = {},
): NotYet {
  const { environment = flag === null ? null : environmentOf(flag), accepted = [] } = options;
  return { flag, environment, accepted, remedy };
}

function environmentOf(flag: string): string {
  return `KVRELAY_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`;
}

/** Throws unless `value` asks for what already happens. */
export function refuseNotYet(
  { accepted, remedy }: NotYet,
  setting: string,
  value: string | undefined,
): void {
  if (value !== undefined) {
    const isOff = accepted.includes('off') && isOffText(value);
    if (isOff || accepted.includes(value)) return;
  }
  throw new ConfigError({
    setting,
    ...(value !== undefined && { value }),
    problem: 'is not supported yet',
    allowed: accepted.length > 0 ? listed(accepted) : 'to leave it out',
    remedy,
  });
}

/**
 * Variables that belong to the host's Dynamo as much as to kvrelay: set for its other processes, so
 * they end no start. The text continues "… is set but not used yet: ".
 */
export const unusedHostVariables: ReadonlyMap<string, string> = new Map([
  ['DYN_DISCOVERY_BACKEND', 'this relay announces itself nowhere'],
  ['DYN_FILE_KV', 'this relay announces itself nowhere'],
  ['ETCD_ENDPOINTS', 'this relay announces itself nowhere'],
  ['ETCD_LEASE_TTL', 'this relay announces itself nowhere'],
  ['DYN_EVENT_PLANE_HOST', 'this relay advertises no address'],
  ['DYN_REQUEST_PLANE', 'this relay answers no router queries'],
  ['DYN_TCP_RPC_HOST', 'this relay answers no router queries'],
  ['DYN_TCP_RPC_PORT', 'this relay answers no router queries'],
]);
