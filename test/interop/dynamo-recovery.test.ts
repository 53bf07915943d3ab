/**
 * A stock Dynamo 1.6.1 router follows a source of this test and asks our recovery service for what it
 * missed. What it holds in the end is held against the index that it asked.
 */

import { pack } from 'msgpackr';
import { connect } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NatsConnection } from '../../src/connections/nats.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { RecoveryService } from '../../src/router/recovery/recovery-service.ts';
import type { RequestServerLimits } from '../../src/router/recovery/request-server.ts';
import { FakeIndex } from '../support/fake-index.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { DynamoProcess, type DynamoSettings, hasDynamo, RegistryFolder } from './dynamo.ts';

const PUBLISHER = 0xabc123;
const KEPT_EVENTS = 8;
const NOT_NOW = 'Error: no snapshot now';
type Codec = 'msgpack' | 'json';

interface Source {
  readonly index: FakeIndex;
  readonly metrics: RelayMetrics;
  readonly workerId: bigint;
  readonly service: RecoveryService;
  /** Publishes events as one message. */
  readonly publish: (...events: Uint8Array[]) => void;
  readonly settings: DynamoSettings;
}

async function startSource(
  requestPlane: 'tcp' | 'nats',
  codec: Codec,
  pastChains: number[],
  limits: Partial<RequestServerLimits> = {},
): Promise<Source> {
  const server = await startNatsServer();
  onTestFinished(() => server.stop());
  const folder = new RegistryFolder();
  const namespace = `recovery-${requestPlane}-${codec}`;
  const settings = { namespace, folder: folder.path, requestPlane, natsUrl: server.url };
  await new DynamoProcess('dynamo_worker', settings).started('worker_ready');
  const workerId = await folder.instanceId(`${namespace}/backend/generate/`);

  const index = new FakeIndex({ workerId, keptEvents: KEPT_EVENTS });
  for (const blocks of pastChains) index.store(blocks);
  const metrics = new RelayMetrics();
  const service = await startService(requestPlane, codec, server.url, { index, metrics, limits });
  const endpoint = { namespace, component: 'backend' };
  const address = await service.open({ endpoint, workerId, dpRank: 0, publisherId: PUBLISHER });
  if (address === null) throw new Error('the source cannot be asked');
  announce(folder, namespace, workerId, JSON.stringify(address.transport), codec);

  const events = await connect({ servers: server.url });
  onTestFinished(() => events.close());
  let sequence = 0;
  const publish = (...batch: Uint8Array[]): void => {
    const envelope = pack({
      publisher_id: PUBLISHER,
      sequence: sequence++,
      published_at: BigInt(Date.now()),
      topic: 'kv-events',
      payload: Buffer.concat([Buffer.from([0x90 | batch.length]), ...batch]),
    });
    events.publish(
      `namespace.${namespace}.component.backend.endpoint.generate.kv-events`,
      envelope,
    );
  };
  return { index, metrics, workerId, service, publish, settings };
}

async function startService(
  requestPlane: 'tcp' | 'nats',
  codec: Codec,
  natsUrl: string,
  {
    index,
    metrics,
    limits,
  }: Pick<Source, 'index' | 'metrics'> & { limits: Partial<RequestServerLimits> },
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
    rank: () => ({ index, metrics, hold: { begin: () => () => undefined } }),
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
  folder: RegistryFolder,
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
  folder.put(
    'event_sources',
    key,
    `{"type":"EventSource",${scope},"publisher_id":${PUBLISHER},"metadata":{"kv_state_endpoint":${served},` +
      `"worker":{"worker_id":${workerId},"dp_rank":0},"publisher_id":${PUBLISHER},"recovery_target":${target}}}`,
  );
}

/** Rows as the router's program prints them, in one order. */
function rowsOf({ index, workerId }: Pick<Source, 'index' | 'workerId'>): string[] {
  return index.blocks
    .map(({ parentHash, blockHash, tokensHash }) =>
      [workerId, 0, 'device', parentHash ?? '', blockHash, tokensHash].join(' '),
    )
    .sort();
}

function rowsIn(router: DynamoProcess): string[] {
  const blocks = (router.last('state')?.blocks ?? []) as (string | number | null)[][];
  return blocks.map((row) => row.map((cell) => String(cell ?? '')).join(' ')).sort();
}

async function expectEqual(
  router: DynamoProcess,
  source: Source,
  timeoutMs = 10_000,
): Promise<void> {
  const wanted = rowsOf(source);
  let heldBlocks = -1;
  await eventually(() => {
    const state = router.last('state')?.blocks;
    if (!Array.isArray(state) || state.length === heldBlocks) return heldBlocks === wanted.length;
    heldBlocks = state.length;
    return heldBlocks === wanted.length;
  }, timeoutMs);
  expect(rowsIn(router)).toEqual(wanted);
}

const PLANES = [
  ['tcp', 'msgpack'],
  ['tcp', 'json'],
  ['nats', 'msgpack'],
  ['nats', 'json'],
] as const;

describe.skipIf(!hasDynamo()).each(PLANES)(
  'a stock router, requests over %s in %s',
  (plane, codec) => {
    test('gets a dump when it joins, ranges where events are missing, and knows what is too new', async () => {
      const source = await startSource(
        plane,
        codec,
        Array.from({ length: 20 }, () => 3),
      );
      const { index, metrics, publish, settings } = source;
      const router = new DynamoProcess('dynamo_router', settings, ['--interval', '0.1']);
      await router.started('router_ready');
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 1, events: 0 });

      publish(index.store(2));
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 1, events: 0 });

      for (let lost = 0; lost < 3; lost++) index.store(2);
      publish(index.store(1));
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 1, events: 1 });

      for (let lost = 0; lost < KEPT_EVENTS + 1; lost++) index.store(2);
      publish(index.store(1));
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 2, events: 1 });

      // An event far ahead of what the index knows: the router asks, learns so, and takes it as it is.
      const ahead = new FakeIndex({ workerId: source.workerId });
      for (let id = 0; id < index.lastEventId + 4; id++) ahead.store(1);
      publish(ahead.store(1));
      expect(await eventually(() => metrics.recoveryQueries.too_new === 1)).toBe(true);
      expect(source.service.counts.refusedRequests).toEqual({
        unknown_path: 0,
        overloaded: 0,
        unsupported_transport: 0,
        malformed_request: 0,
      });
      expect(source.service.counts.failedAnswers).toEqual({
        unreachable: 0,
        timeout: 0,
        closed_early: 0,
      });
    });
  },
);

describe.skipIf(!hasDynamo())('a stock router', () => {
  test('asks again at once after its idle connection was closed', async () => {
    const source = await startSource('tcp', 'msgpack', [3], { idleTimeoutMs: 300, sweepMs: 50 });
    const { index, metrics, publish, settings, service } = source;
    const router = new DynamoProcess('dynamo_router', settings, ['--interval', '0.1']);
    await router.started('router_ready');
    await expectEqual(router, source);
    expect(await eventually(() => service.counts.droppedClients.idle > 0)).toBe(true);
    index.store(2);
    const startMs = performance.now();
    publish(index.store(2));
    expect(await eventually(() => metrics.recoveryQueries.events === 1)).toBe(true);
    // Sooner than its first pause between attempts.
    expect(performance.now() - startMs).toBeLessThan(150);
    await expectEqual(router, source);
  });

  test.each(['msgpack', 'json'] as const)(
    'takes a dump of 100,000 blocks whole, in %s',
    async (codec) => {
      const chains = Array.from({ length: 200 }, () => 500);
      const source = await startSource('tcp', codec, chains);
      const router = new DynamoProcess('dynamo_router', source.settings, ['--interval', '1']);
      await router.started('router_ready');
      await expectEqual(router, source, 60_000);
      expect(source.metrics.recoveryQueries).toMatchObject({ tree_dump: 1, error: 0 });
    },
  );

  test('asks again until a snapshot is possible, and keeps its place', async () => {
    const source = await startSource('tcp', 'msgpack', [2, 2]);
    const { index, metrics, publish, settings } = source;
    const router = new DynamoProcess('dynamo_router', settings, ['--interval', '0.1']);
    await router.started('router_ready');
    await expectEqual(router, source);
    index.prepare = () => Promise.reject(new Error('no snapshot now'));
    index.store(2);
    publish(index.store(2));
    await eventually(() => metrics.recoveryQueries.error === 2);
    index.prepare = async () => undefined;
    await expectEqual(router, source);
    expect(metrics.recoveryQueries.events).toBe(1);
  });
});
