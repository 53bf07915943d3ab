/**
 * The coordinator endpoint beside LMCache's own code: real servers' posts and registrations, and behind it the real
 * coordinator's gate and key directory.
 */
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import type { CoordinatorStatus } from '../../src/status/coordinator-status.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';
import type { CommandPeer } from './command-peer.ts';
import {
  LmcacheCoordinator,
  lmcacheAvailable,
  type Placement,
  startServer,
} from './lmcache-peers.ts';

const WAIT_MS = 30_000;

interface Relay {
  readonly worker: Worker;
  readonly url: string;
  readonly status: () => CoordinatorStatus;
  /** `backend_id medium tenant key`, sorted. */
  readonly objects: () => Promise<string[]>;
}

async function startRelay(flags: readonly string[] = [], port = 0): Promise<Relay> {
  const listen = ['--lmcache-coordinator-listen', `127.0.0.1:${port}`];
  const served = ['--plane-endpoint', 'tcp://127.0.0.1:0', '--http', '127.0.0.1:0'];
  const config = configOf('--engine', 'none', ...listen, ...served, ...flags);
  const worker = createWorker(config, {
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  return {
    worker,
    url: worker.status().sources[0]?.endpoint ?? '',
    status: () => worker.status().lmcache_coordinator as CoordinatorStatus,
    objects: async () => {
      const text = await (await fetch(`${worker.httpUrl}/api/objects?source=lmcache`)).text();
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, string> & { media: string[] })
        .flatMap(({ backend_id, tenant_id, object_key, media }) =>
          media.map((medium) => `${backend_id} ${medium} ${tenant_id} ${object_key}`),
        )
        .sort();
    },
  };
}

async function startBehind(port = 0): Promise<LmcacheCoordinator> {
  const coordinator = await LmcacheCoordinator.start(port);
  onTestFinished(() => coordinator.kill());
  return coordinator;
}

async function startReporting(url: string, instanceId = 'mp-1'): Promise<CommandPeer> {
  const server = await startServer(url, instanceId);
  onTestFinished(() => server.kill());
  return server;
}

/** The real directory's placements as objects: ranks and groups are holders of one. */
function objectsOf(placements: readonly Placement[]): string[] {
  const all = placements.map(([instance, medium, salt, key]) => {
    const [model, hash] = key.split('@');
    const backend = instance === '' ? `shared:${medium}` : `server:${instance}`;
    return `${backend} ${medium} ${model}${salt && `@${salt}`} ${hash}`;
  });
  return [...new Set(all)].sort();
}

/** `instance medium keys bytes`, of what holds something. */
function usageOf(rows: readonly (readonly [string, string, number])[]): string[] {
  const sums = new Map<string, { keys: number; bytes: number }>();
  for (const [instance, medium, bytes] of rows) {
    const sum = sums.get(`${instance} ${medium}`) ?? { keys: 0, bytes: 0 };
    sums.set(`${instance} ${medium}`, { keys: sum.keys + 1, bytes: sum.bytes + bytes });
  }
  return [...sums].map(([name, { keys, bytes }]) => `${name} ${keys} ${bytes}`).sort();
}

function shownUsage({ compartments }: CoordinatorStatus): string[] {
  return compartments
    .filter(({ keys }) => keys > 0)
    .map(({ instance_id, tier, backend, keys, bytes }) =>
      [instance_id ?? '', `${tier}/${backend}`, keys, bytes].join(' '),
    )
    .sort();
}

async function expectEqual(relay: Relay, coordinator: LmcacheCoordinator): Promise<void> {
  const placements = await coordinator.held();
  expect(await relay.objects()).toEqual(objectsOf(placements));
  const rows = placements.map(
    ([instance, medium, , , , bytes]) => [instance, medium, bytes] as const,
  );
  expect(shownUsage(relay.status())).toEqual(usageOf(rows));
}

test.skipIf(!lmcacheAvailable())(
  'two servers, two models, salts, ranks, groups and a pool: as the real directory has it',
  async () => {
    const coordinator = await startBehind();
    const relay = await startRelay(['--lmcache-coordinator-forward', coordinator.url]);
    const [one, two] = await Promise.all([
      startReporting(relay.url, 'mp-1'),
      startReporting(relay.url, 'mp-2'),
    ]);
    await one.ask({ op: 'register' });
    expect(await coordinator.ask({ op: 'members' })).toEqual(['mp-1']);
    await one.ask({
      op: 'capacity',
      modules: [
        ['l1', 'dram', 5000, false],
        ['l2', 's3', 9000, true],
      ],
    });
    const wide = { ranks: [1, 2], groups: [0, 1] };
    await one.ask({
      op: 'store_l1',
      chunks: ['a', 'b'],
      tokens: [
        [1, 2],
        [3, 4],
      ],
    });
    await one.ask({ op: 'store_l1', chunks: ['a', 'b', 'c'], model: 'org/m2', size: 77, ...wide });
    await two.ask({ op: 'store_l1', chunks: ['a'], salt: 'tenant-a' });
    await one.ask({ op: 'store_l2', chunks: ['a', 'b'], backend: 'fs' });
    await two.ask({ op: 'store_l2', chunks: ['a', 'b', 'd'], backend: 's3', shared: true });
    await expectEqual(relay, coordinator);

    await one.ask({ op: 'evict_l1', chunks: ['a'], model: 'org/m2', ranks: [1], groups: [0, 1] });
    await one.ask({ op: 'read_l1', chunks: ['b'] });
    await one.ask({ op: 'delete_l2', chunks: ['b', 'd'], backend: 's3', shared: true });
    await expectEqual(relay, coordinator);
    expect((await relay.objects()).filter((row) => row.includes('org/m2'))).toHaveLength(3);
    await one.ask({ op: 'evict_l1', chunks: ['a'], model: 'org/m2', ranks: [2], groups: [0, 1] });
    expect((await relay.objects()).filter((row) => row.includes('org/m2'))).toHaveLength(2);
    await expectEqual(relay, coordinator);

    const capacity = relay.status().compartments.map((row) => [row.backend, row.capacity_bytes]);
    expect(capacity).toContainEqual(['dram', 5000]);
    expect(capacity).toContainEqual(['s3', 9000]);
    // A server that leaves takes its own along, its L2 as well: nobody can read it there any more.
    await one.ask({ op: 'leave' });
    expect(await eventually(() => relay.status().instances.some(({ left }) => left), WAIT_MS)).toBe(
      true,
    );
    const stays = objectsOf(await coordinator.held()).filter(
      (row) => !row.startsWith('server:mp-1 '),
    );
    expect(await relay.objects()).toEqual(stays);
    expect(relay.worker.status().sources[0]?.counters).toMatchObject({
      lost_messages: 0,
      malformed: 0,
    });
  },
);

test.skipIf(!lmcacheAvailable())('restarts and lost posts', async () => {
  const coordinator = await startBehind();
  const relay = await startRelay(['--lmcache-coordinator-forward', coordinator.url]);
  const server = await startReporting(relay.url);
  const other = await startReporting(relay.url, 'mp-2');
  await other.ask({ op: 'store_l1', chunks: ['z'] });
  await server.ask({ op: 'store_l1', chunks: ['a'] });
  await server.ask({ op: 'store_l2', chunks: ['b'] });
  await server.ask({ op: 'store_l2', chunks: ['c'], backend: 's3', shared: true });
  await server.ask({ op: 'restart', incarnation: 1001 });
  await server.ask({ op: 'store_l1', chunks: ['d'] });
  // LMCache's directory believes in the server's own L2 across a restart, though deletions may have got lost.
  const known = objectsOf(await coordinator.held());
  expect(await relay.objects()).toEqual(
    known.filter((row) => !row.startsWith('server:mp-1 l2/fs')),
  );
  expect((await relay.objects()).map((row) => row.split(' ')[0])).toEqual([
    'server:mp-1',
    'server:mp-2',
    'shared:l2/s3',
  ]);

  await server.ask({ op: 'lose', count: 3 });
  await server.ask({ op: 'store_l1', chunks: ['e'] });
  expect(await coordinator.ask({ op: 'streams' })).toMatchObject({
    'mp-1': { incarnation: 1001, last_seq: 5, gap_detected: true },
  });
  const rows = await relay.objects();
  expect(rows.map((row) => row.split(' ').slice(0, 2).join(' '))).toEqual([
    'server:mp-1 l1/dram',
    'server:mp-2 l1/dram',
  ]);
  const [first] = relay.status().instances.filter(({ instance_id }) => instance_id === 'mp-1');
  expect(first).toMatchObject({ whole: false, lost_batches: 3, restarts: 1, last_seq: 5 });
  expect(relay.worker.status().sources[0]?.counters).toMatchObject({
    lost_messages: 3,
    restarts: 1,
    invalidated_objects: 4,
  });
});

test.skipIf(!lmcacheAvailable())(
  'a coordinator that is slow, dies and comes back: no post is lost here, none there but while it was away',
  async () => {
    const coordinator = await startBehind();
    const relay = await startRelay(['--lmcache-coordinator-forward', coordinator.url]);
    const server = await startReporting(relay.url);
    await server.ask({ op: 'store_l1', chunks: ['a'] });
    // Slower than the sink waits: it gives the post up, the coordinator has it all the same.
    await coordinator.ask({ op: 'slow', seconds: 2.5 });
    await server.ask({ op: 'store_l1', chunks: ['b'] });
    await server.ask({ op: 'store_l1', chunks: ['c'] });
    expect(await relay.objects()).toHaveLength(3);
    const last = (): Promise<unknown> => coordinator.ask({ op: 'streams' });
    const deadlineMs = performance.now() + WAIT_MS;
    for (let seq = 0; seq < 3 && performance.now() < deadlineMs; ) {
      seq = ((await last()) as { 'mp-1'?: { last_seq: number } })['mp-1']?.last_seq ?? 0;
    }
    expect(await last()).toMatchObject({ 'mp-1': { last_seq: 3, gap_detected: false } });
    await expectEqual(relay, coordinator);

    await coordinator.kill();
    await server.ask({ op: 'store_l1', chunks: ['d'] });
    expect(await relay.objects()).toHaveLength(4);
    const again = await startBehind(coordinator.port);
    await server.ask({ op: 'store_l1', chunks: ['e'] });
    expect(objectsOf(await again.held())).toHaveLength(1);
    expect(await relay.objects()).toHaveLength(5);
    expect(relay.worker.status().sources[0]?.counters.lost_messages).toBe(0);
  },
);

test.skipIf(!lmcacheAvailable())(
  'alone it answers registration, heartbeats and leave, and a relay that restarts is registered at again',
  async () => {
    const port = await freePorts(1);
    const first = await startRelay([], port);
    const server = await startReporting(first.url);
    await server.ask({ op: 'register' });
    await server.ask({ op: 'store_l1', chunks: ['a'] });
    const members = async (): Promise<unknown> => (await fetch(`${first.url}/instances`)).json();
    expect(await members()).toMatchObject({
      instances: [{ instance_id: 'mp-1', http_port: 8000 }],
    });
    await first.worker.stop();

    const second = await startRelay([], port);
    const isMember = (): boolean => second.status().instance_count === 1;
    expect(await eventually(isMember, WAIT_MS)).toBe(true);
    await server.ask({ op: 'store_l1', chunks: ['b'] });
    expect(await second.objects()).toHaveLength(1);
    const [instance] = second.status().instances;
    expect(instance).toMatchObject({ instance_id: 'mp-1', whole: false, lost_batches: 0 });

    await server.ask({ op: 'leave' });
    const hasLeft = (): boolean => second.status().instances[0]?.left === true;
    expect(await eventually(hasLeft, WAIT_MS)).toBe(true);
    expect(await second.objects()).toEqual([]);
    expect(await members()).toEqual({ instances: [] });
  },
);
