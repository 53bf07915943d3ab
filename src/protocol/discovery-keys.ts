/**
 * Where discovery records stand: buckets, keys, and the file names of keys.
 *
 * v1/instances        <ns>/<comp>/<endpoint name>/<instance id hex>
 * v1/mdc              <ns>/<comp>/<endpoint name>/<instance id hex>[/<suffix>]
 * v1/event_sources    namespace/<seg ns>/component/<seg comp>/endpoint/<seg ep>/topic/kv-events/<publisher id hex>
 * v1/event_channels   the same form, with the topic of the channel
 *
 * Hex is lower case without padding. A segment keeps A–Z a–z 0–9 - _, a file name letters and digits alone;
 * every other byte is %XX, so a `%` of a segment is escaped again.
 * Source  ai-dynamo/dynamo 1.6.1, discovery and its file and etcd stores.
 */
import { KV_EVENTS_TOPIC } from './envelope.ts';

export const BUCKETS = ['v1/instances', 'v1/mdc', 'v1/event_channels', 'v1/event_sources'] as const;
export type Bucket = (typeof BUCKETS)[number];

/** Where one record stands. */
export interface DiscoveryKey {
  readonly bucket: Bucket;
  readonly key: string;
}

/** The KV-state endpoint: whose worker the events are of. */
export interface KvEndpoint {
  readonly namespace: string;
  readonly component: string;
  readonly endpoint: string;
}

/** Most bytes of a file's name on every file system that matters. */
export const MAX_FILE_NAME_BYTES = 255;

/** One segment of a subject or of a source's key. */
function segmentOf(name: string): string {
  return percentEncoded(name, /[^A-Za-z0-9_-]/g);
}

/** The file name of a whole key. */
export function fileNameOf(key: string): string {
  return percentEncoded(key, /[^A-Za-z0-9]/g);
}

/** The key of a file name; null where it is not the exact name of any key. */
export function keyOfFileName(name: string): string | null {
  const latin1 = name.replace(/%([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const key = Buffer.from(latin1, 'latin1').toString('utf8');
  return fileNameOf(key) === name ? key : null;
}

/** `namespace.<ns>.component.<c>.endpoint.<e>`: what the subjects of an endpoint begin with. */
export function subjectPrefix({ namespace, component, endpoint }: KvEndpoint): string {
  const [ns, comp, ep] = [namespace, component, endpoint].map(segmentOf);
  return `namespace.${ns}.component.${comp}.endpoint.${ep}`;
}

/** Where routers expect what an endpoint's worker publishes on a topic. */
export function endpointSubject(endpoint: KvEndpoint, topic: string): string {
  return `${subjectPrefix(endpoint)}.${topic}`;
}

/** What the keys of an endpoint's sources begin with, and those of its channels. */
export function sourcePrefix(endpoint: KvEndpoint): string {
  return channelPrefix(endpoint, KV_EVENTS_TOPIC);
}

export function sourceKey(endpoint: KvEndpoint, publisherId: number): string {
  return channelKey(endpoint, KV_EVENTS_TOPIC, publisherId);
}

/** What the keys of an endpoint's channels for a topic begin with. */
export function channelPrefix(endpoint: KvEndpoint, topic: string): string {
  return `${subjectPrefix(endpoint).replaceAll('.', '/')}/topic/${topic}/`;
}

export function channelKey(endpoint: KvEndpoint, topic: string, publisherId: number): string {
  return `${channelPrefix(endpoint, topic)}${publisherId.toString(16)}`;
}

/** What the keys of the instances that serve an endpoint begin with. */
export function instancePrefix({ namespace, component, endpoint }: KvEndpoint): string {
  return `${namespace}/${component}/${endpoint}/`;
}

/** The name under which a source answers recovery queries. */
export function queryEndpointName(publisherId: number): string {
  return `${QUERY_ENDPOINT}${publisherId.toString(16)}`;
}

/** What the keys of a component's query instances begin with. */
export function queryInstancePrefix({ namespace, component }: KvEndpoint): string {
  return `${namespace}/${component}/${QUERY_ENDPOINT}`;
}

const QUERY_ENDPOINT = 'worker_kv_query_source_';

export function instanceKey(endpoint: KvEndpoint, instanceId: bigint): string {
  return `${instancePrefix(endpoint)}${instanceId.toString(16)}`;
}

/** The instance id behind the prefix of an instance's or a card's key: exact, unlike the JSON's; null where it is none. */
export function instanceIdOf(key: string, prefix: string): bigint | null {
  const [hex = ''] = key.startsWith(prefix) ? key.slice(prefix.length).split('/') : [];
  return /^[0-9a-f]{1,16}$/.test(hex) ? BigInt(`0x${hex}`) : null;
}

function percentEncoded(text: string, escaped: RegExp): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(escaped, (byte) => {
      const code = byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
      return `%${code}`;
    });
}
