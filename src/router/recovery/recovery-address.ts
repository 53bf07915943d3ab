/**
 * Under which names a source answers queries. Routers take them as they are told; these are stock's.
 *
 * TCP path      <worker hex>/<namespace>/<component>/worker_kv_query_source_<publisher hex>
 * NATS subject  <namespace>_<component>.worker_kv_query_source_<publisher hex>-<worker hex>
 * Source        ai-dynamo/dynamo 1.6.1, transports of an endpoint instance.
 */

/** The endpoint whose KV state a source speaks of. */
export interface ServedEndpoint {
  readonly namespace: string;
  readonly component: string;
}

/** One source: a worker's rank, under one publisher id. */
export interface ServedSource {
  readonly endpoint: ServedEndpoint;
  /** u64. */
  readonly workerId: bigint;
  readonly dpRank: number;
  /** 1 … 2^53 − 1. */
  readonly publisherId: number;
}

export function recoveryPath({ endpoint, workerId, publisherId }: ServedSource): string {
  const fields = [endpoint.namespace, endpoint.component, queryEndpoint(publisherId)];
  return [workerId.toString(16), ...fields.map(pathField)].join('/');
}

export function recoverySubject({ endpoint, workerId, publisherId }: ServedSource): string {
  const [namespace, component] = [endpoint.namespace, endpoint.component].map(subjectField);
  return `${namespace}_${component}.${queryEndpoint(publisherId)}-${workerId.toString(16)}`;
}

/** `host` is an address; IPv6 without brackets. */
export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function queryEndpoint(publisherId: number): string {
  return `worker_kv_query_source_${publisherId.toString(16)}`;
}

function pathField(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('/', '%2F');
}

/** A blank would end the subject, and `*` or `>` in it would answer for others. */
function subjectField(name: string): string {
  return Buffer.from(name, 'utf8')
    .toString('latin1')
    .replace(/[^A-Za-z0-9_-]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
