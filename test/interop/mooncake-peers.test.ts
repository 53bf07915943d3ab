/** The Mooncake programs of test/peers do what they are told, and the events of it arrive. */
import { unpack } from 'msgpackr';
import { expect, test } from 'vitest';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import {
  emulatorAvailable,
  MooncakeClient,
  MooncakeMaster,
  mooncakeAvailable,
} from './mooncake-peers.ts';

interface Event {
  readonly event_type: string;
  readonly object_key?: string;
  readonly tenant_id: string;
  readonly medium: string | null;
}

const WAIT_MS = 30_000;

async function collectorOf(master: MooncakeMaster): Promise<ZmqCollector> {
  const collector = new ZmqCollector(master.endpoint);
  await collector.subscribed();
  return collector;
}

function sequencesOf(collector: ZmqCollector): number[] {
  return collector.frames.map((frames) => Number(frames[1]?.readBigUInt64BE()));
}

/** `stored k1 cpu`, for each event that has arrived. */
function eventsOf(collector: ZmqCollector): string[] {
  const events = collector.frames.flatMap((frames) => {
    const [, batch] = unpack(frames[2] as Buffer) as [number, Event[], number];
    return batch;
  });
  return events.map(({ event_type: type, object_key: key = '', medium }) =>
    [type, key, medium ?? ''].join(' ').trimEnd(),
  );
}

test.skipIf(!mooncakeAvailable())('the real master tells what its client does', async () => {
  const master = await MooncakeMaster.start();
  const client = await MooncakeClient.start(master);
  const collector = await collectorOf(master);
  try {
    expect(await client.ask({ op: 'put', key: 'k1' })).toBe(0);
    expect(await client.ask({ op: 'put', keys: ['k2', 'k3'] })).toBe(0);
    expect(await client.ask({ op: 'remove', key: 'k1' })).toBe(0);
    expect(await client.ask({ op: 'exist', keys: ['k1', 'k2'] })).toEqual([0, 1]);
    await eventually(() => eventsOf(collector).length >= 4, WAIT_MS);
    expect(eventsOf(collector).slice().sort()).toEqual([
      'removed k1 cpu',
      'stored k1 cpu',
      'stored k2 cpu',
      'stored k3 cpu',
    ]);
    expect(await master.ask({ op: 'status' })).toMatchObject({
      enabled: true,
      published_events: 4,
    });
    const keys = await (await fetch(`${master.adminUrl}/get_all_keys`)).text();
    expect(keys.trim().split('\n').sort()).toEqual(['k2', 'k3']);
    await expect(client.ask({ op: 'no such command' })).rejects.toThrow('no such command');
  } finally {
    await collector.close();
    await client.stop();
    await master.stop();
  }
});

test.skipIf(!mooncakeAvailable())(
  'a killed master is gone, and one on its ports knows nothing',
  async () => {
    const first = await MooncakeMaster.start();
    const client = await MooncakeClient.start(first);
    expect(await client.ask({ op: 'put', key: 'k1' })).toBe(0);
    await first.kill();
    await client.kill();
    const second = await MooncakeMaster.start([], first.ports);
    try {
      expect(await (await fetch(`${second.adminUrl}/get_all_keys`)).text()).toBe('');
    } finally {
      await second.stop();
    }
    await expect(fetch(`${second.adminUrl}/get_all_keys`)).rejects.toThrow('fetch failed');
  },
);

test.skipIf(!emulatorAvailable())(
  'the emulated store does what a master cannot be made to do',
  async () => {
    const store = await MooncakeMaster.startEmulator();
    const collector = await collectorOf(store);
    try {
      expect(await store.ask({ op: 'stored', key: 'k1' })).toBe(1);
      expect(await store.ask({ op: 'lose', count: 3 })).toBe(1);
      expect(await store.ask({ op: 'stored', key: 'k1', medium: 'disk' })).toBe(5);
      await store.ask({ op: 'stored', key: 'k2', silent: true });
      await eventually(() => collector.frames.length >= 2, WAIT_MS);
      expect(sequencesOf(collector)).toEqual([1, 5]);
      expect(eventsOf(collector)).toEqual(['stored k1 cpu', 'stored k1 disk']);
      expect(await store.ask({ op: 'held' })).toEqual([
        ['default', 'k1', ['cpu', 'disk']],
        ['default', 'k2', ['cpu']],
      ]);
      const answer = await fetch(`${store.adminUrl}/batch_query_keys?keys=k2,k3`);
      expect(await answer.json()).toMatchObject({
        success: true,
        data: { k2: { ok: true, local_disk_values: null }, k3: { ok: false, values: null } },
      });
      await store.ask({ op: 'set_admin', failing: true });
      expect((await fetch(`${store.adminUrl}/get_all_keys`)).status).toBe(503);

      expect(await store.ask({ op: 'restart' })).toBe(0);
      const [again] = await Promise.all([collectorOf(store), store.ask({ op: 'held' })]);
      expect(await store.ask({ op: 'stored', key: 'k3' })).toBe(1);
      await eventually(() => again.frames.length >= 1, WAIT_MS);
      expect(sequencesOf(again)).toEqual([1]);
      await again.close();
    } finally {
      await collector.close();
      await store.stop();
    }
  },
);
