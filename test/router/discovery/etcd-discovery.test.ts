/** The etcd backend against a real etcd. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Etcd3 } from 'etcd3';
import { afterEach, describe, expect, test } from 'vitest';
import type { DiscoveryFault } from '../../../src/metrics/discovery-metrics.ts';
import type { Records } from '../../../src/router/discovery/discovery.ts';
import { EtcdDiscovery } from '../../../src/router/discovery/etcd-discovery.ts';
import {
  type EtcdServerProcess,
  etcdServerAvailable,
  startEtcdServer,
} from '../../support/etcd-server.ts';
import { createCertificates } from '../../support/nats-identities.ts';
import { eventually } from '../../support/plane-collector.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PREFIX = 'namespace/n/component/c%2Ed/';
const SOURCE = { bucket: 'v1/event_sources', key: `${PREFIX}1`, value: '{"a":"é"}' } as const;
const CHANNEL = { bucket: 'v1/event_channels', key: `${PREFIX}1`, value: '{"b":2}' } as const;
const NO_ACCESS = {
  etcdAuthUsername: null,
  etcdAuthPassword: null,
  etcdAuthCa: null,
  etcdAuthClientCert: null,
  etcdAuthClientKey: null,
};

async function startServer(
  options: Parameters<typeof startEtcdServer>[0] = {},
): Promise<EtcdServerProcess> {
  const server = await startEtcdServer(options);
  cleanups.push(() => server.stop());
  return server;
}

function clientOf({ url }: EtcdServerProcess): Etcd3 {
  const client = new Etcd3({ hosts: url });
  cleanups.push(() => client.close());
  return client;
}

interface Started {
  readonly discovery: EtcdDiscovery;
  readonly faults: DiscoveryFault[];
  readonly told: Records[];
  readonly lost: { count: number };
}

async function startDiscovery(
  url: string,
  access: Partial<Record<keyof typeof NO_ACCESS, string>> = {},
  leaseTtlSeconds = 5,
): Promise<Started> {
  const faults: DiscoveryFault[] = [];
  const told: Records[] = [];
  const lost = { count: 0 };
  const discovery = new EtcdDiscovery({
    access: { etcdEndpoints: [url], ...NO_ACCESS, ...access },
    leaseTtlSeconds,
    onFault: (fault) => faults.push(fault),
  });
  discovery.watch('v1/event_sources', PREFIX, (records) => told.push(records));
  discovery.onLost(() => lost.count++);
  cleanups.push(() => discovery.stop());
  await discovery.start();
  return { discovery, faults, told, lost };
}

describe.skipIf(!etcdServerAvailable())('etcd', () => {
  test('records are keys under one lease, kept alive past its time, gone at once with a stop', async () => {
    const server = await startServer();
    const client = clientOf(server);
    const { discovery, faults } = await startDiscovery(server.url, {}, 2);
    await discovery.put(CHANNEL);
    await discovery.put(SOURCE);
    expect(await eventually(() => discovery.isSettled, 3000)).toBe(true);
    expect(discovery.isAvailable).toBe(true);
    const all = await client.getAll().strings();
    expect(all).toEqual({
      [`v1/event_channels/${PREFIX}1`]: CHANNEL.value,
      [`v1/event_sources/${PREFIX}1`]: SOURCE.value,
    });
    const { kvs } = await client.getAll().exec();
    const leases = kvs.map(({ lease }) => lease);
    expect(new Set(leases).size).toBe(1);
    expect(leases[0]).not.toBe('0');
    await new Promise((resolve) => setTimeout(resolve, 4500));
    expect(Object.keys(await client.getAll().strings())).toHaveLength(2);
    expect(faults).toEqual([]);
    await discovery.stop();
    expect(await client.getAll().strings()).toEqual({});
  });

  test('what others put and delete is told within a second, exactly below the prefix', async () => {
    const server = await startServer();
    const client = clientOf(server);
    const { told } = await startDiscovery(server.url);
    expect(await eventually(() => told.length > 0, 3000)).toBe(true);
    expect(told.at(-1)).toEqual(new Map());
    await client.put(`v1/event_sources/${PREFIX}2`).value('other');
    await client.put('v1/event_sources/namespace/x/2').value('not below');
    const key = `${PREFIX}2`;
    expect(await eventually(() => told.at(-1)?.get(key) === 'other', 1000)).toBe(true);
    expect(told.at(-1)).toEqual(new Map([[key, 'other']]));
    await client.delete().key(`v1/event_sources/${PREFIX}2`);
    expect(await eventually(() => told.at(-1)?.size === 0, 1000)).toBe(true);
  });

  test('withdraw, list and evict work on the keys themselves', async () => {
    const server = await startServer();
    const client = clientOf(server);
    const { discovery } = await startDiscovery(server.url);
    await discovery.put(SOURCE);
    await client.put(`v1/event_sources/${PREFIX}2`).value('left');
    expect(await discovery.list('v1/event_sources', PREFIX)).toEqual(
      new Map([
        [`${PREFIX}1`, SOURCE.value],
        [`${PREFIX}2`, 'left'],
      ]),
    );
    await discovery.evict({ bucket: 'v1/event_sources', key: `${PREFIX}2` });
    await discovery.withdraw(SOURCE);
    expect(await client.getAll().strings()).toEqual({});
  });

  test('what somebody deletes is written again', async () => {
    const server = await startServer();
    const client = clientOf(server);
    const { discovery } = await startDiscovery(server.url);
    await discovery.put(SOURCE);
    await eventually(() => discovery.isSettled, 3000);
    await client.delete().key(`v1/event_sources/${PREFIX}1`);
    const deadlineMs = Date.now() + 2000;
    let value: string | null = null;
    while (value === null && Date.now() < deadlineMs) {
      value = await client.get(`v1/event_sources/${PREFIX}1`).string();
    }
    expect(value).toBe(SOURCE.value);
  });

  test('a lost lease is told once, and what is put then stands under a new one', async () => {
    const server = await startServer();
    const client = clientOf(server);
    const { discovery, faults, lost } = await startDiscovery(server.url, {}, 2);
    await discovery.put(SOURCE);
    await eventually(() => discovery.isSettled, 3000);
    const { kvs } = await client.getAll().exec();
    await client.leaseClient.leaseRevoke({ ID: kvs[0]?.lease ?? '0' });
    expect(await eventually(() => lost.count === 1, 3000)).toBe(true);
    await discovery.put({ ...SOURCE, key: `${PREFIX}2` });
    expect(await eventually(() => discovery.isSettled, 3000)).toBe(true);
    expect(await client.getAll().keys()).toEqual([`v1/event_sources/${PREFIX}2`]);
    expect([lost.count, faults.filter((fault) => fault === 'lease_lost').length]).toEqual([1, 1]);
    expect(await eventually(() => discovery.isAvailable, 3000)).toBe(true);
  });

  test('a server that comes later, and one that is frozen for a while, get what was put', async () => {
    const placeholder = await startServer();
    const { port, url } = placeholder;
    await placeholder.stop();
    const { discovery, faults, told } = await startDiscovery(url);
    await discovery.put(CHANNEL);
    expect([discovery.isAvailable, discovery.isSettled]).toEqual([false, false]);
    await eventually(() => faults.includes('write'), 8000);
    const server = await startServer({ port });
    expect(await eventually(() => discovery.isSettled && discovery.isAvailable, 15_000)).toBe(true);
    server.kill('SIGSTOP');
    const put = discovery.put(SOURCE);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    server.kill('SIGCONT');
    await put;
    expect(await eventually(() => discovery.isSettled, 10_000)).toBe(true);
    expect(await eventually(() => told.at(-1)?.size === 1, 10_000)).toBe(true);
  });

  test('what was to go while etcd was away goes once it is back, before what comes in its place', async () => {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'kvrelay-etcd-data-'));
    cleanups.push(() => rmSync(dataDirectory, { recursive: true, force: true }));
    const before = await startServer({ dataDirectory });
    const { discovery } = await startDiscovery(before.url, {}, 60);
    await discovery.put(CHANNEL);
    await discovery.put(SOURCE);
    expect(await eventually(() => discovery.isSettled, 5000)).toBe(true);
    before.kill('SIGKILL');
    await before.exited;
    await discovery.withdraw(SOURCE);
    await discovery.evict({ bucket: CHANNEL.bucket, key: CHANNEL.key });
    const next = { ...SOURCE, key: `${PREFIX}2` };
    await discovery.put(next);
    expect(discovery.isSettled).toBe(false);
    const server = await startServer({ dataDirectory, port: before.port });
    expect(await eventually(() => discovery.isSettled, 30_000)).toBe(true);
    const keys = await clientOf(server).getAll().keys();
    expect(keys).not.toContain(`v1/event_sources/${SOURCE.key}`);
    expect(keys).toContain(`v1/event_sources/${next.key}`);
  }, 60_000);

  test('a prefix of many megabytes is read', async () => {
    const server = await startServer();
    const client = clientOf(server);
    const { discovery, faults } = await startDiscovery(server.url);
    const value = 'x'.repeat(1 << 20);
    for (let id = 0; id < 8; id++) {
      await client.put(`v1/event_sources/${PREFIX}${id}`).value(value);
    }
    expect((await discovery.list('v1/event_sources', PREFIX)).size).toBe(8);
    expect(faults).toEqual([]);
  });

  test('user and password', async () => {
    const server = await startServer();
    const client = clientOf(server);
    await client.role('root').create();
    await client.user('root').create('sesame');
    await client.user('root').addRole('root');
    await client.auth.authEnable();
    const right = await startDiscovery(server.url, {
      etcdAuthUsername: 'root',
      etcdAuthPassword: 'sesame',
    });
    await right.discovery.put(SOURCE);
    expect(await eventually(() => right.discovery.isSettled, 5000)).toBe(true);
    const wrong = await startDiscovery(server.url, {
      etcdAuthUsername: 'root',
      etcdAuthPassword: 'open',
    });
    await wrong.discovery.put(CHANNEL);
    await eventually(() => wrong.faults.length > 0, 5000);
    expect([wrong.discovery.isSettled, wrong.discovery.isAvailable]).toEqual([false, false]);
  });

  test('TLS with a client certificate', async () => {
    const made = createCertificates();
    const { caCert: caFile, serverCert: certFile, serverKey: keyFile } = made;
    const server = await startServer({ tls: { caFile, certFile, keyFile } });
    const { discovery } = await startDiscovery(server.url, {
      etcdAuthCa: caFile,
      etcdAuthClientCert: made.clientCert,
      etcdAuthClientKey: made.clientKey,
    });
    await discovery.put(SOURCE);
    expect(await eventually(() => discovery.isSettled, 5000)).toBe(true);
    const without = await startDiscovery(server.url, { etcdAuthCa: caFile });
    await without.discovery.put(CHANNEL);
    await eventually(() => without.faults.length > 0, 8000);
    expect(without.discovery.isSettled).toBe(false);
  });
});
