/** The order in which one source's records are written and withdrawn. */
import { expect, test } from 'vitest';
import { DiscoveryMetrics } from '../../../src/metrics/discovery-metrics.ts';
import type { DiscoveryKey } from '../../../src/protocol/discovery-keys.ts';
import {
  type DiscoveryRecord,
  type SourceIdentity,
  sourceRecord,
} from '../../../src/protocol/discovery-records.ts';
import { parseLosslessJson } from '../../../src/protocol/lossless-json.ts';
import type { Discovery, Records } from '../../../src/router/discovery/discovery.ts';
import { SourceAnnouncer } from '../../../src/router/discovery/source-announcer.ts';
import type { RecoveryEndpoint } from '../../../src/router/recovery-endpoint.ts';

const endpoint = { namespace: 'n', component: 'c', endpoint: 'e' };
const mark = { host: 'h', engineEndpoint: 'tcp://e:1' };
const source: SourceIdentity = { endpoint, workerId: 2n ** 64n - 1n, dpRank: 3, publisherId: 255 };
const channel = { kind: 'nats' } as const;

/** A registry in memory that notes each step; a put can be made to wait. */
class Notebook implements Discovery {
  readonly kind = 'file';
  readonly isAvailable = true;
  readonly isSettled = true;
  readonly steps: string[] = [];
  readonly standing = new Map<string, DiscoveryRecord>();
  gate: Promise<void> = Promise.resolve();

  async start(): Promise<void> {}

  async put(record: DiscoveryRecord): Promise<void> {
    await this.gate;
    this.steps.push(`+${record.bucket.slice(3)}`);
    this.standing.set(`${record.bucket}/${record.key}`, record);
  }

  async withdraw({ bucket, key }: DiscoveryKey): Promise<void> {
    this.steps.push(`-${bucket.slice(3)}`);
    this.standing.delete(`${bucket}/${key}`);
  }

  async list(bucket: string, prefix: string): Promise<Records> {
    const found = [...this.standing.values()].filter(
      (record) => record.bucket === bucket && record.key.startsWith(prefix),
    );
    return new Map(found.map(({ key, value }) => [key, value]));
  }

  async evict({ bucket, key }: DiscoveryKey): Promise<void> {
    this.steps.push(`x${bucket.slice(3)}`);
    this.standing.delete(`${bucket}/${key}`);
  }

  watch(): void {}

  onLost(): void {}

  async stop(): Promise<void> {}
}

function endpointOn(notebook: Notebook): RecoveryEndpoint {
  return {
    isOnLoopback: false,
    async open({ publisherId }) {
      notebook.steps.push(`listen ${publisherId}`);
      return { transport: { tcp: '10.0.0.7:1/x' }, codec: 'msgpack' };
    },
    async close({ publisherId }) {
      notebook.steps.push(`close ${publisherId}`);
    },
  };
}

function announcerOn(notebook: Notebook, recovery: RecoveryEndpoint | null = null) {
  const metrics = new DiscoveryMetrics();
  const announcer = new SourceAnnouncer({ discovery: notebook, mark, recovery, metrics });
  return { announcer, metrics };
}

test('channel, recovery endpoint and its instance stand before the source, and go after it', async () => {
  const notebook = new Notebook();
  const { announcer, metrics } = announcerOn(notebook, endpointOn(notebook));
  await announcer.want({ source, channel, isClaimed: true });
  const written = ['+event_channels', 'listen 255', '+instances', '+event_sources'];
  expect(notebook.steps).toEqual(written);
  expect(announcer.isAnnounced).toBe(true);
  const claim = notebook.standing.get(
    'v1/event_sources/namespace/n/component/c/endpoint/e/topic/kv-events/ff',
  );
  expect(parseLosslessJson(claim?.value ?? '')).toMatchObject({
    metadata: {
      worker: { worker_id: 2n ** 64n - 1n, dp_rank: 3 },
      recovery_target: {
        endpoint: 'worker_kv_query_source_ff',
        instance_id: 2n ** 64n - 1n,
        transport: { tcp: '10.0.0.7:1/x' },
      },
    },
  });
  await announcer.want(null);
  expect(notebook.steps.slice(written.length)).toEqual([
    '-event_sources',
    '-instances',
    'close 255',
    '-event_channels',
  ]);
  expect([notebook.standing.size, metrics.announcements]).toEqual([0, 1]);
});

test('a wish for nothing at first is reached, and the next one too', async () => {
  const notebook = new Notebook();
  const { announcer } = announcerOn(notebook);
  await announcer.want(null);
  await announcer.want({ source, channel, isClaimed: true });
  expect(announcer.isAnnounced).toBe(true);
});

test('a live-only source has no instance, a plane without a channel no channel record', async () => {
  const notebook = new Notebook();
  const { announcer } = announcerOn(notebook);
  await announcer.want({ source, channel: null, isClaimed: true });
  expect(notebook.steps).toEqual(['+event_sources']);
});

test('a concession takes the source record alone, and brings it back as it was', async () => {
  const notebook = new Notebook();
  const { announcer, metrics } = announcerOn(notebook);
  await announcer.want({ source, channel, isClaimed: true });
  const before = [...notebook.standing.values()];
  await announcer.want({ source, channel, isClaimed: false });
  expect([announcer.isAnnounced, notebook.standing.size]).toEqual([false, 1]);
  await announcer.want({ source, channel, isClaimed: true });
  expect([...notebook.standing.values()]).toEqual(before);
  expect(metrics.announcements).toBe(2);
});

test('a new incarnation comes after the old one is gone, and a wish of meanwhile counts last', async () => {
  const notebook = new Notebook();
  const { announcer } = announcerOn(notebook);
  let open = (): void => undefined;
  notebook.gate = new Promise((resolve) => {
    open = resolve;
  });
  const first = announcer.want({ source, channel, isClaimed: true });
  await new Promise((resolve) => setImmediate(resolve));
  void announcer.want(null);
  const last = announcer.want({
    source: { ...source, publisherId: 256 },
    channel,
    isClaimed: true,
  });
  open();
  await Promise.all([first, last]);
  expect(notebook.steps).toEqual([
    '+event_channels',
    '+event_sources',
    '-event_sources',
    '-event_channels',
    '+event_channels',
    '+event_sources',
  ]);
  expect([...notebook.standing.keys()].every((key) => key.endsWith('/100'))).toBe(true);
});

test('leftovers of an earlier life go first; those of anybody else stay', async () => {
  const notebook = new Notebook();
  const { announcer: earlier } = announcerOn(notebook, endpointOn(notebook));
  await earlier.want({ source, channel, isClaimed: true });
  const others = [
    sourceRecord({ ...source, publisherId: 7, dpRank: 4 }, mark, null),
    sourceRecord({ ...source, publisherId: 8 }, { ...mark, host: 'other' }, null),
  ];
  for (const record of others) await notebook.put(record);
  notebook.steps.length = 0;
  const { announcer, metrics } = announcerOn(notebook);
  await announcer.want({ source: { ...source, publisherId: 9 }, channel, isClaimed: true });
  expect(notebook.steps).toEqual([
    'xevent_sources',
    'xinstances',
    'xevent_channels',
    '+event_channels',
    '+event_sources',
  ]);
  expect([...notebook.standing.values()]).toEqual(expect.arrayContaining(others));
  expect(metrics.evictedRecords).toBe(3);
});
