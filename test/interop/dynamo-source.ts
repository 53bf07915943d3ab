/**
 * A source of events beside a stock worker, announced by hand: an index of the test, our recovery service
 * over it, and events on NATS that wait for answers as a relay's do.
 */
import { pack } from 'msgpackr';
import { connect } from 'nats';
import { expect, onTestFinished } from 'vitest';
import { NatsConnection } from '../../src/connections/nats.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PlaneMessage } from '../../src/protocol/envelope.ts';
import { RecoveryService, type ServedRank } from '../../src/router/recovery/recovery-service.ts';
import type { RequestServerLimits } from '../../src/router/recovery/request-server.ts';
import { ResyncMonitor } from '../../src/router/recovery/resync-monitor.ts';
import { OutputHold } from '../../src/sinks/output-hold.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { FakeIndex } from '../support/fake-index.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { NO_HOLD } from '../support/no-hold.ts';
import type { DynamoPeer } from './dynamo-peers.ts';
import { SAYS_CHANGES, startPeer } from './router-trial.ts';

const PUBLISHER = 0xabc123;
export const KEPT_EVENTS = 8;

/** What `prepare` of the index rejects with where a test wants it to. */
const NOT_NOW = 'Error: no snapshot now';

type Codec = 'msgpack' | 'json';

interface SourceOptions {
  readonly limits?: Partial<RequestServerLimits>;
  readonly keptEvents?: number;
  /** False: output does not wait for answers. */
  readonly isHeld?: boolean;
}

export interface Source {
  readonly index: FakeIndex;
  readonly metrics: RelayMetrics;
  readonly workerId: bigint;
  readonly service: RecoveryService;
  /** Publishes up to 15 events as one message. */
  readonly publish: (...events: Uint8Array[]) => void;
  readonly startRouter: (...flags: string[]) => Promise<DynamoPeer>;
}

export async function startSource(
  requestPlane: 'tcp' | 'nats',
  codec: Codec,
  pastChains: number[],
  options: SourceOptions = {},
): Promise<Source> {
  const { limits = {}, keptEvents = KEPT_EVENTS } = options;
  const server = await startNatsServer();
  onTestFinished(() => server.stop());
  const registry = new DiscoveryPlace();
  onTestFinished(() => registry.close());
  const namespace = `recovery-${requestPlane}-${codec}`;
  const place = [
    `--namespace=${namespace}`,
    `--discovery-dir=${registry.directory}`,
    `--nats-server=${server.url}`,
    `--request-plane=${requestPlane}`,
  ];
  await startPeer('dynamo_worker', place);
  const workerId = await registry.instanceId({
    namespace,
    component: 'backend',
    endpoint: 'generate',
  });

  const index = new FakeIndex({ workerId, keptEvents });
  for (const blocks of pastChains) index.store(blocks);
  const metrics = new RelayMetrics();
  const events = await connect({ servers: server.url });
  onTestFinished(() => events.close());
  const subject = `namespace.${namespace}.component.backend.endpoint.generate.kv-events`;
  const sink = {
    maxMessageBytes: Number.POSITIVE_INFINITY,
    outboxBytes: 0,
    publish: ({ envelope }: PlaneMessage): void => events.publish(subject, envelope),
  };
  const holdOptions = { maxBytes: 64 << 20, onOverrun: () => undefined };
  const hold = new OutputHold(holdOptions, sink, metrics);
  const resyncs = new ResyncMonitor({
    quietMs: 0,
    lostMessages: () => 0,
    onResync: () => undefined,
  });
  const served = options.isHeld === false ? NO_HOLD : resyncs.watching(hold);
  const rank = { index, metrics, hold: served };
  const service = await startService(requestPlane, codec, server.url, rank, limits);
  const endpoint = { namespace, component: 'backend' };
  const address = await service.open({ endpoint, workerId, dpRank: 0, publisherId: PUBLISHER });
  if (address === null) throw new Error('the source cannot be asked');
  announce(registry, namespace, workerId, JSON.stringify(address.transport), codec);

  let sequence = 0;
  const publish = (...batch: Uint8Array[]): void => {
    const envelope = pack({
      publisher_id: PUBLISHER,
      sequence,
      published_at: BigInt(Date.now()),
      topic: 'kv-events',
      payload: Buffer.concat([Buffer.from([0x90 | batch.length]), ...batch]),
    });
    hold.publish({ sequence: sequence++, eventCount: batch.length, envelope });
  };
  const startRouter = (...flags: string[]): Promise<DynamoPeer> =>
    startPeer('dynamo_router', [...place, SAYS_CHANGES, ...flags]);
  return { index, metrics, workerId, service, publish, startRouter };
}

async function startService(
  requestPlane: 'tcp' | 'nats',
  codec: Codec,
  natsUrl: string,
  rank: ServedRank,
  limits: Partial<RequestServerLimits>,
): Promise<RecoveryService> {
  const errors: string[] = [];
  const onError = (error: unknown): void => void errors.push(String(error));
  const client = { servers: natsUrl };
  const nats =
    requestPlane === 'nats'
      ? new NatsConnection({ client, startupTimeoutMs: 10_000, onError })
      : null;
  nats?.start();
  const service = new RecoveryService({
    requestPlane,
    codec,
    advertisedHost: null,
    port: 0,
    nats,
    rank: () => rank,
    onError,
    limits,
  });
  await service.start();
  onTestFinished(async () => {
    await service.stop();
    await nats?.stop();
    expect(errors.filter((error) => error !== NOT_NOW)).toEqual([]);
  });
  return service;
}

function announce(
  registry: DiscoveryPlace,
  namespace: string,
  workerId: bigint,
  transport: string,
  codec: Codec,
): void {
  const served = `{"namespace":"${namespace}","component":"backend","name":"generate"}`;
  const hex = PUBLISHER.toString(16);
  const key = `namespace/${namespace}/component/backend/endpoint/generate/topic/kv-events/${hex}`;
  const scope = `"scope":{"kind":"endpoint","endpoint":${served}},"topic":"kv-events"`;
  const target =
    `{"component":"backend","endpoint":"worker_kv_query_source_${hex}","namespace":"${namespace}",` +
    `"instance_id":${workerId},"transport":${transport},"request_plane_codec":"${codec}"}`;
  registry.add(
    'v1/event_sources',
    key,
    `{"type":"EventSource",${scope},"publisher_id":${PUBLISHER},"metadata":{"kv_state_endpoint":${served},` +
      `"worker":{"worker_id":${workerId},"dp_rank":0},"publisher_id":${PUBLISHER},"recovery_target":${target}}}`,
  );
}
