/** The client for etcd: an optional package, loaded only where it is asked for. */
import { readFileSync } from 'node:fs';
import type { Etcd3, IOptions } from 'etcd3';
import { KvRelayError } from '../../errors.ts';
import { MAX_RECORDS_BYTES } from './discovery.ts';

/** The settings of the same names. */
export interface EtcdAccess {
  readonly etcdEndpoints: readonly string[];
  readonly etcdAuthUsername: string | null;
  readonly etcdAuthPassword: string | null;
  readonly etcdAuthCa: string | null;
  readonly etcdAuthClientCert: string | null;
  readonly etcdAuthClientKey: string | null;
}

/** The optional package `etcd3` is not installed. */
export class EtcdMissingError extends KvRelayError {
  readonly code = 'KVR_ETCD_MISSING';

  constructor(cause: unknown) {
    super('The package etcd3 is not installed, and --discovery etcd needs it', {
      cause,
      remedy: 'Install it beside kvrelay: npm install etcd3@1',
    });
  }
}

/** A call that etcd did not answer in time. */
class EtcdTimeoutError extends KvRelayError {
  readonly code = 'KVR_ETCD_TIMEOUT';
}

/** Longest that one call may take. */
const CALL_MS = 5000;
const MIN_RECONNECT_MS = 250;
const MAX_RECONNECT_MS = 2000;
/** A link whose other end is silently gone is noticed within both. */
const PING_MS = 10_000;
const PING_TIMEOUT_MS = 5000;

export async function connectEtcd(access: EtcdAccess): Promise<Etcd3> {
  const options: IOptions = {
    hosts: [...access.etcdEndpoints],
    ...credentialsOf(access),
    defaultCallOptions: ({ isStream }) => (isStream ? {} : deadline()),
    grpcOptions: {
      'grpc.initial_reconnect_backoff_ms': MIN_RECONNECT_MS,
      'grpc.min_reconnect_backoff_ms': MIN_RECONNECT_MS,
      'grpc.max_reconnect_backoff_ms': MAX_RECONNECT_MS,
      'grpc.keepalive_time_ms': PING_MS,
      'grpc.keepalive_timeout_ms': PING_TIMEOUT_MS,
      // A whole prefix is one answer; gRPC's own bound is 4 MiB, less than the cards of many workers.
      'grpc.max_receive_message_length': MAX_RECORDS_BYTES,
    },
  };
  const { Etcd3: Client } = await loadClient();
  return new Client(options);
}

/** For calls that take options of their own. */
export function deadline(): { deadline: number } {
  return { deadline: Date.now() + CALL_MS };
}

/** A call that never comes back must hold up nothing: deadlines do not cover all of the client's waiting. */
export async function within<Value>(call: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new EtcdTimeoutError('etcd does not answer')), 2 * CALL_MS);
  });
  try {
    return await Promise.race([call, limit]);
  } finally {
    clearTimeout(timer);
  }
}

async function loadClient(): Promise<typeof import('etcd3')> {
  try {
    return await import('etcd3');
  } catch (cause) {
    throw new EtcdMissingError(cause);
  }
}

function credentialsOf(access: EtcdAccess): Partial<IOptions> {
  const { etcdAuthUsername: username, etcdAuthPassword: password } = access;
  const { etcdAuthCa: ca, etcdAuthClientCert: cert, etcdAuthClientKey: key } = access;
  return {
    ...(username !== null && password !== null && { auth: { username, password } }),
    ...(ca !== null && {
      credentials: {
        rootCertificate: readFileSync(ca),
        ...(cert !== null && { certChain: readFileSync(cert) }),
        ...(key !== null && { privateKey: readFileSync(key) }),
      },
    }),
  };
}
