/**
 * A relay beside a stock worker and stock routers, on planes and in a registry of this test alone, and what
 * a router holds beside what the relay's `/api/dump` says.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { startEtcdServer } from '../support/etcd-server.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';
import { setDifference } from './compare.ts';
import { DynamoPeer } from './dynamo-peers.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const CATCH_UP_MS = 30_000;

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

export async function startPeer(
  program: 'dynamo_worker' | 'dynamo_router',
  flags: readonly string[],
): Promise<DynamoPeer> {
  const peer = await DynamoPeer.start(program, flags);
  onTestFinished(() => peer.stop());
  return peer;
}

/** A relay with HTTP on; the engine may connect later. */
export async function startRelay(
  { shared, relayOnly }: Place,
  engineEndpoint: string,
  flags: readonly string[],
): Promise<Worker> {
  const own = ['--engine-endpoint', engineEndpoint, '--http', '127.0.0.1:0'];
  const relay = createWorker(configOf(...own, ...shared, ...relayOnly, ...flags), { logger });
  onTestFinished(() => relay.stop());
  await relay.start();
  return relay;
}

/** Resolves once a rank has passed on the engine's batch with this number. */
export async function passedOn(relay: Worker, sequence: number, rankIndex = 0): Promise<void> {
  const emitted = (): string | null => relay.status().ranks[rankIndex]?.engine.emitted_seq ?? null;
  await eventually(() => emitted() === `${sequence}`, CATCH_UP_MS);
  expect(emitted()).toBe(`${sequence}`);
}

/** One text a block: worker, rank, tier, parent, block hash, tokens hash. */
async function dumpedRows(relay: Worker): Promise<string[]> {
  const response = await fetch(`${relay.httpUrl}/api/dump`);
  if (!response.ok) throw new Error(`/api/dump answers ${response.status}`);
  const lines = (await response.text()).split('\n').slice(0, -1);
  return lines.map((line) => {
    const row = JSON.parse(line) as Record<string, string | number | null>;
    return [
      row.worker_id,
      row.dp_rank,
      row.storage_tier,
      row.parent_hash ?? '',
      row.block_hash,
      row.tokens_hash,
    ].join(' ');
  });
}

async function heldRows(router: DynamoPeer): Promise<string[]> {
  const rows = await router.askIndex();
  return rows.map((row) => row.map((cell) => String(cell ?? '')).join(' '));
}

/** Rows that come again are told apart, so that sets of them count. */
function numbered(rows: readonly string[]): string[] {
  const copies = new Map<string, number>();
  return rows.map((row) => {
    const copy = (copies.get(row) ?? 0) + 1;
    copies.set(row, copy);
    return copy === 1 ? row : `${row}, copy ${copy}`;
  });
}

/**
 * Holds a router against the relay until both have the same blocks; resolves with them. Events on their
 * way are waited for, what an engine has not sent yet is the caller's to wait for.
 */
export async function expectSameBlocks(router: DynamoPeer, relay: Worker): Promise<string[]> {
  const deadlineMs = performance.now() + CATCH_UP_MS;
  for (;;) {
    const [held, dumped] = await Promise.all([heldRows(router), dumpedRows(relay)]);
    const difference = setDifference(numbered(held), numbered(dumped));
    if (difference.missing.length + difference.wrong.length === 0) return held;
    if (performance.now() > deadlineMs) expect(difference).toEqual({ missing: [], wrong: [] });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
