/** Where a relay, stock workers and stock routers meet: planes and a registry of one test alone. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { startEtcdServer } from '../support/etcd-server.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';

export interface Surroundings {
  readonly eventPlane: 'nats' | 'zmq' | 'broker';
  readonly requestPlane?: 'nats' | 'tcp';
  readonly discovery?: 'file' | 'etcd';
  readonly blockSize?: number;
}

/** Flags of the relay and of its peers. */
export interface Place {
  readonly shared: readonly string[];
  readonly relayOnly: readonly string[];
}

/** A directory for the file registry, of this test alone; whoever meets there keeps its own records alive. */
export function emptyRegistry(): string {
  const directory = mkdtempSync(join(tmpdir(), 'kvrelay-interop-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export async function makePlace({
  eventPlane,
  requestPlane = 'tcp',
  discovery = 'file',
  blockSize = 4,
}: Surroundings): Promise<Place> {
  const shared = ['--namespace', 'interop-1', '--block-size', `${blockSize}`];
  shared.push('--request-plane', requestPlane, '--discovery', discovery);
  if (discovery === 'file') {
    shared.push('--discovery-dir', emptyRegistry());
  } else {
    const etcd = await startEtcdServer();
    onTestFinished(() => etcd.stop());
    shared.push('--etcd-endpoints', etcd.url);
  }
  if (eventPlane === 'nats' || requestPlane === 'nats') {
    const server = await startNatsServer();
    onTestFinished(() => server.stop());
    shared.push('--nats-server', server.url);
  }
  if (eventPlane === 'nats') return { shared: [...shared, '--event-plane', 'nats'], relayOnly: [] };
  shared.push('--event-plane', 'zmq');
  if (eventPlane === 'zmq') return { shared, relayOnly: ['--plane-endpoint', 'tcp://127.0.0.1:0'] };
  const broker = await ZmqBroker.start();
  onTestFinished(() => broker.close());
  return { shared: [...shared, '--zmq-broker', broker.url], relayOnly: [] };
}
