/**
 * The real master and its client beside `createWorker`: after each thing that a store does, and a comparison,
 * what is held is what the master itself answers.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import type { SourceStatus } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';
import {
  MooncakeClient,
  MooncakeMaster,
  type MooncakePorts,
  mooncakeAvailable,
} from './mooncake-peers.ts';

const WAIT_MS = 30_000;

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Row {
  readonly tenant_id: string;
  readonly object_key: string;
  readonly media: readonly string[];
}

/** A worker beside nothing but this store. */
function followerOf(master: MooncakeMaster, ...flags: readonly string[]): Worker {
  const store = [`--mooncake-endpoint=${master.endpoint}`, `--mooncake-master=${master.adminUrl}`];
  return createWorker(configOf('--engine=none', '--event-plane=none', ...store, ...flags), {
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
}

/** A master with clients, and a worker that follows it. */
class Store {
  readonly worker: Worker;
  master: MooncakeMaster;

  private constructor(master: MooncakeMaster, worker: Worker) {
    this.master = master;
    this.worker = worker;
  }

  static async start(...masterFlags: string[]): Promise<Store> {
    const master = await MooncakeMaster.start(masterFlags.map((flag) => `--flag=${flag}`));
    const worker = followerOf(master, '--mooncake-reconcile-seconds=1', '--http=127.0.0.1:0');
    const store = new Store(master, worker);
    ends.push(() => store.master.stop());
    ends.push(() => worker.stop());
    await worker.start();
    await store.until(() => store.source.reconciliation?.last_ms !== null, 'a comparison');
    return store;
  }

  async client(...flags: string[]): Promise<MooncakeClient> {
    const client = await MooncakeClient.start(this.master, flags);
    ends.push(() => client.stop());
    return client;
  }

  get source(): SourceStatus {
    return this.worker.status().sources[0] as SourceStatus;
  }

  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const deadlineMs = performance.now() + WAIT_MS;
    while (!(await condition())) {
      if (performance.now() > deadlineMs) throw new Error(`${what} did not come`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async held(): Promise<string[]> {
    const text = await (await fetch(`${this.worker.httpUrl}/api/objects`)).text();
    const rows = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Row);
    return rows.map(({ tenant_id, object_key, media }) => {
      return `${tenant_id === 'default' ? '' : `${tenant_id}/`}${object_key} ${media.join()}`;
    });
  }

  /** As the master lists its keys and answers for each. */
  async truth(): Promise<string[]> {
    const list = await (await fetch(`${this.master.adminUrl}/get_all_keys`)).text();
    const keys = list.split('\n').filter((key) => key !== '');
    if (keys.length === 0) return [];
    const query = keys.map(encodeURIComponent).join(',');
    const answer = await fetch(`${this.master.adminUrl}/batch_query_keys?keys=${query}`);
    const { data } = (await answer.json()) as { data: Record<string, Record<string, unknown>> };
    return keys.flatMap((key) => {
      const { ok, values, ...others } = data[key] ?? {};
      if (ok !== true) return [];
      const disk = [others.disk_values, others.local_disk_values, others.nof_values];
      const media = [Array.isArray(values) ? 'cpu' : '', disk.some(Array.isArray) ? 'disk' : ''];
      return [`${key} ${media.filter((medium) => medium !== '').join()}`];
    });
  }

  /** Waits until the state is the master's, at a moment when neither changes. */
  async agrees(): Promise<string[]> {
    let held: string[] = [];
    let truth: string[] = [];
    const areEqual = async (): Promise<boolean> => {
      held = (await this.held()).sort();
      truth = (await this.truth()).sort();
      return held.join('\n') === truth.join('\n');
    };
    await eventually(() => false, 300);
    const deadlineMs = performance.now() + WAIT_MS;
    while (!(await areEqual()) && performance.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(held).toEqual(truth);
    return truth;
  }
}

describe.skipIf(!mooncakeAvailable())('the real master 0.3.14', () => {
  test('put, upsert, remove, remove_all, odd keys', async () => {
    const store = await Store.start('-default_kv_lease_ttl=0');
    const client = await store.client();
    const keys = ['k1', 'modèle/キー@0', 'a b+c', 'x%41&y=z#?'];
    expect(await client.ask({ op: 'put', keys })).toBe(0);
    expect(await store.agrees()).toHaveLength(4);
    await client.ask({ op: 'upsert', key: 'k1' });
    await client.ask({ op: 'upsert', key: 'k2' });
    expect(await store.agrees()).toHaveLength(5);
    await client.ask({ op: 'remove', key: 'k1' });
    expect(await store.agrees()).toHaveLength(4);
    await client.ask({ op: 'remove_all' });
    expect(await store.agrees()).toEqual([]);
    expect(store.source.counters).toMatchObject({
      lost_messages: 0,
      malformed: 0,
      dropped_events: 0,
    });
  });

  test('a late joiner knows what was stored before', async () => {
    const master = await MooncakeMaster.start();
    ends.push(() => master.stop());
    const client = await MooncakeClient.start(master);
    ends.push(() => client.stop());
    await client.ask({ op: 'put', keys: ['a', 'b', 'c'] });
    const worker = followerOf(master, '--http=off');
    ends.push(() => worker.stop());
    await worker.start();
    expect(await eventually(() => worker.status().sources[0]?.objects === 3, WAIT_MS)).toBe(true);
    await client.ask({ op: 'put', key: 'd' });
    expect(await eventually(() => worker.status().sources[0]?.objects === 4, WAIT_MS)).toBe(true);
  });

  test('tenants: events alone tell of them', async () => {
    const master = await MooncakeMaster.start(['--tenant-quotas=t1,t2']);
    ends.push(() => master.stop());
    const clients: MooncakeClient[] = [];
    for (const tenant of ['t1', 't2']) {
      const client = await MooncakeClient.start(master, ['--tenant', tenant]);
      ends.push(() => client.stop());
      clients.push(client);
    }
    const worker = followerOf(master, '--http=off');
    ends.push(() => worker.stop());
    await worker.start();
    const objects = (): number => worker.status().sources[0]?.objects ?? -1;
    expect(
      await eventually(() => worker.status().sources[0]?.reconciliation?.last_ms != null, WAIT_MS),
    ).toBe(true);
    for (const client of clients) await client.ask({ op: 'put', keys: ['same', 'more'] });
    expect(await eventually(() => objects() === 4, WAIT_MS)).toBe(true);
    await clients[0]?.ask({ op: 'remove_all' });
    expect(await eventually(() => objects() === 2, WAIT_MS)).toBe(true);
  });

  test('disk copies', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kvrelay-disk-'));
    ends.push(async () => rmSync(folder, { recursive: true, force: true }));
    const store = await Store.start('-enable_offload=true', '-default_kv_lease_ttl=0');
    const client = await store.client('--disk', folder);
    await client.ask({ op: 'put', keys: ['d0', 'd1', 'd2', 'd3'], size: 65_536 });
    await store.until(
      async () => (await store.truth()).every((row) => row.endsWith('cpu,disk')),
      'the disk copies',
    );
    expect(await store.agrees()).toHaveLength(4);
    await client.ask({ op: 'remove', key: 'd0' });
    await client.ask({ op: 'upsert', key: 'd1' });
    expect(await store.agrees()).toHaveLength(3);
  });

  test('overflow of the queue: the gaps are seen, and what was dropped is made good', async () => {
    const store = await Store.start('-kv_events_queue_capacity=2');
    const client = await store.client();
    const keys = Array.from({ length: 800 }, (_, index) => `o${index}`);
    for (const key of keys.splice(0, 3)) await client.ask({ op: 'put', key });
    await store.until(() => store.source.last_seq === '3', 'the first messages');
    await client.ask({ op: 'put', keys, size: 1 });
    expect(await store.agrees()).toHaveLength(800);
    expect(store.source.counters.lost_messages).toBeGreaterThan(0);
  });

  test('eviction of whole objects, and objects gone with their client, are found', async () => {
    const store = await Store.start('-default_kv_lease_ttl=0');
    const client = await store.client('--segment-bytes', String(16 << 20));
    const keys = Array.from({ length: 400 }, (_, index) => `e${index}`);
    await client.ask({ op: 'put_each', keys, size: 65_536 });
    expect((await store.agrees()).length).toBeLessThan(400);
    await client.kill();
    await store.until(async () => (await store.truth()).length === 0, "the objects' end");
    expect(await store.agrees()).toEqual([]);
  });

  test('a restart of the master, with nothing stored since', async () => {
    const store = await Store.start();
    const client = await store.client();
    await client.ask({ op: 'put', keys: ['a', 'b'] });
    expect(await store.agrees()).toHaveLength(2);
    const ports: MooncakePorts = store.master.ports;
    await store.master.kill();
    await client.kill();
    store.master = await MooncakeMaster.start([], ports);
    expect(await store.agrees()).toEqual([]);
    const again = await store.client();
    await again.ask({ op: 'put', key: 'c' });
    expect(await store.agrees()).toEqual(['c cpu']);
  });
});
