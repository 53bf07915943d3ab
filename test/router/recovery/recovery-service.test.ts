import { connect } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NatsConnection } from '../../../src/connections/nats.ts';
import { RelayMetrics } from '../../../src/metrics/relay-metrics.ts';
import {
  type RecoveryAddress,
  RecoveryService,
  type RecoveryServiceOptions,
} from '../../../src/router/recovery/recovery-service.ts';
import { FakeIndex } from '../../support/fake-index.ts';
import { FakeRouter, RouterClient } from '../../support/fake-router.ts';
import { natsServerAvailable, startNatsServer } from '../../support/nats-server.ts';
import { NO_HOLD } from '../../support/no-hold.ts';
import { eventually } from '../../support/plane-collector.ts';
import { WORKER } from '../../support/recovery-trial.ts';
import { requestFrame, requestPayload } from '../../support/router-requests.ts';

const SOURCE = {
  endpoint: { namespace: 'de/mo', component: 'back.end%' },
  workerId: WORKER,
  dpRank: 0,
  publisherId: 0xabc123,
};

async function startService(
  options: Partial<RecoveryServiceOptions> = {},
): Promise<RecoveryService> {
  const index = new FakeIndex({ workerId: WORKER });
  const service = new RecoveryService({
    requestPlane: 'tcp',
    codec: 'msgpack',
    advertisedHost: null,
    port: 0,
    nats: null,
    rank: () => ({ index, metrics: new RelayMetrics(), hold: NO_HOLD }),
    onError: () => undefined,
    ...options,
  });
  await service.start();
  onTestFinished(() => service.stop());
  return service;
}

function addressIn(address: RecoveryAddress | null, kind: 'tcp' | 'nats_tcp'): string {
  const transport: Partial<Record<typeof kind, string>> = address?.transport ?? {};
  return transport[kind] ?? 'none';
}

async function startRouter(): Promise<FakeRouter> {
  const router = await FakeRouter.start();
  onTestFinished(() => router.close());
  return router;
}

describe('over TCP', () => {
  test('a source is served at the address that routers are told, until it is closed', async () => {
    const service = await startService();
    const address = await service.open(SOURCE);
    const tcp = addressIn(address, 'tcp');
    const [hostPort, ...path] = tcp.split('/');
    expect(address?.codec).toBe('msgpack');
    expect(hostPort).toBe(service.endpoint);
    expect(path.join('/')).toBe(
      '4f7921ac106653e6/de%2Fmo/back.end%25/worker_kv_query_source_abc123',
    );
    const router = await startRouter();
    const port = Number(hostPort?.split(':')[1]);
    const ask = (): ReturnType<FakeRouter['ask']> =>
      router.ask(port, path.join('/'), { worker_id: WORKER });
    expect((await ask()).acknowledgement).toBe('');
    await service.close(SOURCE);
    expect((await ask()).acknowledgement).toMatch(/^Server unavailable: /);
  });

  test.each([
    [null, '127.0.0.1', true],
    ['127.0.0.1', '127.0.0.1', true],
    ['192.0.2.7', '192.0.2.7', false],
  ])(
    'told to be reached at %s it says %s, and listens there',
    async (advertisedHost, host, isLocal) => {
      const service = await startService({ advertisedHost });
      expect(service.endpoint).toMatch(new RegExp(`^${host}:\\d+$`));
      expect(service.isOnLoopback).toBe(isLocal);
      // Whatever the advertised address is, this host reaches the listener.
      const client = await RouterClient.connect(Number(service.endpoint?.split(':')[1]));
      client.close();
    },
  );

  test('an IPv6 address is advertised in brackets', async () => {
    const service = await startService({ advertisedHost: '::1' }).catch(() => null);
    // Not every host has IPv6.
    if (service !== null) expect(service.endpoint).toMatch(/^\[::1\]:\d+$/);
  });

  test('a rank without an index cannot be asked', async () => {
    const service = await startService({ rank: () => null });
    expect(await service.open(SOURCE)).toBeNull();
  });
});

describe.skipIf(!natsServerAvailable())('over NATS', () => {
  async function startNats(port?: number): Promise<Awaited<ReturnType<typeof startNatsServer>>> {
    const server = await startNatsServer(port === undefined ? {} : { port });
    onTestFinished(() => server.stop());
    return server;
  }

  function connectionTo(url: string): NatsConnection {
    const client = { servers: url };
    const nats = new NatsConnection({ client, startupTimeoutMs: 60_000, onError: () => undefined });
    onTestFinished(() => nats.stop());
    return nats;
  }

  test('a source is open once the server has its subject; requests are answered before and after an outage', async () => {
    const server = await startNats();
    const nats = connectionTo(server.url);
    const service = await startService({ requestPlane: 'nats', nats });
    const opening = service.open(SOURCE);
    nats.start();
    const address = await opening;
    const subject = addressIn(address, 'nats_tcp');
    expect(subject).toBe('de%2fmo_back%2eend%25.worker_kv_query_source_abc123-4f7921ac106653e6');
    expect(service.endpoint).toBeNull();

    const router = await startRouter();
    const payload = requestPayload({ address: router.address }, { worker_id: WORKER });
    const ask = async (body: Uint8Array): Promise<string> => {
      const client = await connect({ servers: server.url });
      const reply = await client.request(subject, body, { timeout: 5000 });
      await client.close();
      return Buffer.from(reply.data).toString();
    };
    expect(await ask(payload)).toBe('');
    expect(await eventually(() => router.responses[0]?.isClosed === true)).toBe(true);
    expect(router.responses[0]?.messages.length).toBeGreaterThanOrEqual(3);
    expect(await ask(Buffer.from('nonsense'))).toMatch(/^Server unavailable: /);
    expect(await ask(Buffer.alloc(500_000))).toMatch(/^Server unavailable: /);

    server.kill('SIGKILL');
    await server.exited;
    await eventually(() => !nats.isConnected);
    await startNats(server.port);
    expect(await eventually(() => nats.isConnected)).toBe(true);
    expect(await ask(payload)).toBe('');
    expect(await eventually(() => router.responses[1]?.isClosed === true)).toBe(true);

    await service.close(SOURCE);
    await expect(ask(payload)).rejects.toThrow(/503/);
  });

  test('a source that is closed before there is a connection is not opened', async () => {
    const nats = connectionTo('nats://127.0.0.1:1');
    const service = await startService({ requestPlane: 'nats', nats });
    const opening = service.open(SOURCE);
    await service.close(SOURCE);
    expect(await opening).toBeNull();
  });
});

test('a frame of another source is refused though both share the listener', async () => {
  const service = await startService();
  await service.open(SOURCE);
  await service.open({ ...SOURCE, publisherId: 0xdef });
  const client = await RouterClient.connect(Number(service.endpoint?.split(':')[1]));
  const router = await startRouter();
  const payload = requestPayload({ address: router.address }, { worker_id: WORKER });
  const path = (hex: string): string =>
    `4f7921ac106653e6/de%2Fmo/back.end%25/worker_kv_query_source_${hex}`;
  for (const hex of ['abc123', 'def', 'fed']) client.send(requestFrame(path(hex), payload));
  await client.acknowledged(3);
  expect(client.acknowledgements.map((text) => text.split(':')[0])).toEqual([
    '',
    '',
    'Server unavailable',
  ]);
  client.close();
});
