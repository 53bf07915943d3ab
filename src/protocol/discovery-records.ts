/**
 * Discovery records: what tells a router that a source of KV events exists, where its events come from,
 * and whom to ask for what was missed. JSON, field by field as a stock publisher writes it.
 *
 * EventSource   scope, topic, publisher_id, metadata {kv_state_endpoint, worker {worker_id u64, dp_rank},
 *               publisher_id, recovery_target}; without a recovery target the source is live-only
 * EventChannel  scope, topic, instance_id (the publisher id), transport
 * Endpoint      the recovery target itself, as an instance that is called worker_kv_query_source_<hex>
 * kvrelay       beside them, for ourselves: who wrote it, so that a successor knows its own stale records
 *
 * Source  ai-dynamo/dynamo 1.6.1; unknown fields are ignored there.
 */
import { z } from 'zod';
import {
  type Bucket,
  channelKey,
  type DiscoveryKey,
  instanceKey,
  type KvEndpoint,
  queryEndpointName,
  sourceKey,
  subjectPrefix,
} from './discovery-keys.ts';
import { KV_EVENTS_TOPIC } from './envelope.ts';
import { type LosslessJson, parseLosslessJson, writeLosslessJson } from './lossless-json.ts';

export interface DiscoveryRecord extends DiscoveryKey {
  /** JSON. */
  readonly value: string;
}

/** One source: a worker's rank, under one publisher id. */
export interface SourceIdentity {
  readonly endpoint: KvEndpoint;
  /** u64. */
  readonly workerId: bigint;
  readonly dpRank: number;
  /** 1 … 2^53 − 1. */
  readonly publisherId: number;
}

/** Whose relay wrote a record: the same host and engine are the same relay, started again. */
export interface RelayMark {
  readonly host: string;
  readonly engineEndpoint: string;
}

/** How routers get the events. */
export type ChannelTransport =
  | { readonly kind: 'nats' }
  | { readonly kind: 'zmq'; readonly endpoint: string };

/** How routers ask for what they missed. */
export interface RecoveryAddress {
  /** `<ip literal>:<port>/<path>`, or a NATS subject. */
  readonly transport: { readonly tcp: string } | { readonly nats_tcp: string };
  readonly codec: 'msgpack' | 'json';
}

/** A source of whoever. */
export interface SourceClaim {
  readonly publisherId: bigint;
  readonly workerId: bigint;
  readonly dpRank: number;
  readonly mark: RelayMark | null;
}

export function sourceRecord(
  source: SourceIdentity,
  mark: RelayMark,
  recovery: RecoveryAddress | null,
): DiscoveryRecord {
  const { endpoint, workerId, dpRank, publisherId } = source;
  const value = {
    type: 'EventSource',
    scope: scopeOf(endpoint),
    topic: KV_EVENTS_TOPIC,
    publisher_id: publisherId,
    metadata: {
      kv_state_endpoint: endpointJson(endpoint),
      worker: { worker_id: workerId, dp_rank: dpRank },
      publisher_id: publisherId,
      ...(recovery !== null && { recovery_target: recoveryTarget(source, recovery) }),
    },
    kvrelay: markJson(source, mark),
  };
  return recordOf('v1/event_sources', sourceKey(endpoint, publisherId), value);
}

export function channelRecord(
  source: SourceIdentity,
  mark: RelayMark,
  transport: ChannelTransport,
  topic: string = KV_EVENTS_TOPIC,
): DiscoveryRecord {
  const { endpoint, publisherId } = source;
  const value = {
    type: 'EventChannel',
    scope: scopeOf(endpoint),
    topic,
    instance_id: publisherId,
    transport:
      transport.kind === 'nats'
        ? { kind: 'Nats', config: { subject_prefix: subjectPrefix(endpoint) } }
        : { kind: 'Zmq', config: { endpoint: transport.endpoint } },
    kvrelay: markJson(source, mark),
  };
  return recordOf('v1/event_channels', channelKey(endpoint, topic, publisherId), value);
}

export function queryInstanceRecord(
  source: SourceIdentity,
  mark: RelayMark,
  recovery: RecoveryAddress,
): DiscoveryRecord {
  const { endpoint, workerId, publisherId } = source;
  const value = {
    type: 'Endpoint',
    ...recoveryTarget(source, recovery),
    kvrelay: markJson(source, mark),
  };
  const named = { ...endpoint, endpoint: queryEndpointName(publisherId) };
  return recordOf('v1/instances', instanceKey(named, workerId), value);
}

/**
 * The claim of an EventSource record, null where a router would not take it as a source of this
 * endpoint: wrong scope or topic, publisher ids that differ, or no record at all.
 */
export function readSourceClaim(text: string, endpoint: KvEndpoint): SourceClaim | null {
  const record = sourceShape.safeParse(parsedOrNull(text)).data;
  if (record === undefined) return null;
  const { scope, topic, publisher_id: publisherId, metadata, kvrelay } = record;
  if (topic !== KV_EVENTS_TOPIC || metadata.publisher_id !== publisherId) return null;
  if (writeLosslessJson(scope.endpoint) !== writeLosslessJson(endpointJson(endpoint))) return null;
  const { worker_id: workerId, dp_rank: dpRank } = metadata.worker;
  return { publisherId, workerId, dpRank: Number(dpRank), mark: markOf(kvrelay) };
}

/**
 * Whether a record was written by the same relay, for the same worker and rank, in an earlier life: its
 * mark carries our own values and its key is none of ours.
 */
export function isOwnLeftover(text: string, source: SourceIdentity, mark: RelayMark): boolean {
  const written = markedShape.safeParse(parsedOrNull(text)).data?.kvrelay;
  if (written === undefined) return false;
  return (
    written.host === mark.host &&
    written.engine_endpoint === mark.engineEndpoint &&
    written.worker_id === source.workerId &&
    written.dp_rank === BigInt(source.dpRank) &&
    written.publisher_id !== BigInt(source.publisherId)
  );
}

const u64 = z
  .union([z.bigint(), z.number().int()])
  .transform(BigInt)
  .refine((value) => value >= 0n && value < 1n << 64n);

const endpointShape = z.object({ namespace: z.string(), component: z.string(), name: z.string() });

const markShape = z.object({
  host: z.string(),
  engine_endpoint: z.string(),
  worker_id: u64,
  dp_rank: u64,
  publisher_id: u64,
});
const markedShape = z.object({ kvrelay: markShape });

const sourceShape = z.object({
  type: z.literal('EventSource'),
  scope: z.object({ kind: z.literal('endpoint'), endpoint: endpointShape }),
  topic: z.string(),
  publisher_id: u64,
  metadata: z.object({
    worker: z.object({ worker_id: u64, dp_rank: u64 }),
    publisher_id: u64,
  }),
  // Whatever somebody else has there is not ours.
  kvrelay: markShape.nullish().catch(null),
});

function markOf(written: z.infer<typeof markShape> | null | undefined): RelayMark | null {
  return written ? { host: written.host, engineEndpoint: written.engine_endpoint } : null;
}

function parsedOrNull(text: string): unknown {
  try {
    return parseLosslessJson(text);
  } catch {
    return null;
  }
}

function recordOf(bucket: Bucket, key: string, value: LosslessJson): DiscoveryRecord {
  return { bucket, key, value: writeLosslessJson(value) };
}

function endpointJson({ namespace, component, endpoint }: KvEndpoint): Record<string, string> {
  return { namespace, component, name: endpoint };
}

function scopeOf(endpoint: KvEndpoint): LosslessJson {
  return { kind: 'endpoint', endpoint: endpointJson(endpoint) };
}

function recoveryTarget(
  source: SourceIdentity,
  recovery: RecoveryAddress,
): Record<string, LosslessJson> {
  return {
    component: source.endpoint.component,
    endpoint: queryEndpointName(source.publisherId),
    namespace: source.endpoint.namespace,
    instance_id: source.workerId,
    transport: { ...recovery.transport },
    request_plane_codec: recovery.codec,
  };
}

function markJson(
  { workerId, dpRank, publisherId }: SourceIdentity,
  { host, engineEndpoint }: RelayMark,
): LosslessJson {
  return {
    host,
    engine_endpoint: engineEndpoint,
    worker_id: workerId,
    dp_rank: dpRank,
    publisher_id: publisherId,
  };
}
