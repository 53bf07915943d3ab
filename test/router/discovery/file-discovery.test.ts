/** The file backend on real directories, with real inotify and real time stamps. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { DiscoveryFault } from '../../../src/metrics/discovery-metrics.ts';
import { fileNameOf } from '../../../src/protocol/discovery-keys.ts';
import { MAX_RECORD_BYTES, type Records } from '../../../src/router/discovery/discovery.ts';
import { FileDiscovery } from '../../../src/router/discovery/file-discovery.ts';
import { eventually } from '../../support/plane-collector.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const SOURCE = { bucket: 'v1/event_sources', key: 'namespace/n/x/1', value: '{"a":1}' } as const;
const CHANNEL = { bucket: 'v1/event_channels', key: 'namespace/n/x/1', value: '{"b":2}' } as const;

interface Place {
  readonly directory: string;
  readonly discovery: FileDiscovery;
  readonly faults: DiscoveryFault[];
  /** What the watch of `namespace/n/` on event_sources has told, oldest first. */
  readonly told: Records[];
  readonly fileOf: (record: { bucket: string; key: string }) => string;
}

async function startPlace(): Promise<Place> {
  const parent = mkdtempSync(join(tmpdir(), 'kvrelay-discovery-'));
  cleanups.push(() => rmSync(parent, { recursive: true, force: true }));
  const directory = join(parent, 'made', 'by us');
  const faults: DiscoveryFault[] = [];
  const told: Records[] = [];
  const discovery = new FileDiscovery({ directory, onFault: (fault) => faults.push(fault) });
  discovery.watch('v1/event_sources', 'namespace/n/', (records) => told.push(records));
  cleanups.push(() => discovery.stop());
  await discovery.start();
  const fileOf = ({ bucket, key }: { bucket: string; key: string }): string =>
    join(directory, bucket, fileNameOf(key));
  return { directory, discovery, faults, told, fileOf };
}

/** As another process publishes: a temporary file, renamed. */
function publish(path: string, value: string): void {
  const temporary = join(path, '..', '.tmp_00112233445566ff');
  writeFileSync(temporary, value);
  renameSync(temporary, path);
}

test('a record is a file of its exact name with nothing but the value, and appears whole', async () => {
  const { directory, discovery, fileOf } = await startPlace();
  const seen: string[] = [];
  mkdirSync(join(directory, SOURCE.bucket), { recursive: true });
  const inotify = watch(join(directory, SOURCE.bucket), (_, name) => seen.push(name ?? ''));
  cleanups.push(() => inotify.close());
  await discovery.put(SOURCE);
  expect(readdirSync(join(directory, SOURCE.bucket))).toEqual(['namespace%2Fn%2Fx%2F1']);
  expect(readFileSync(fileOf(SOURCE), 'utf8')).toBe(SOURCE.value);
  await eventually(() => seen.includes('namespace%2Fn%2Fx%2F1'));
  const others = seen.filter((name) => name !== 'namespace%2Fn%2Fx%2F1');
  expect(others.every((name) => /^\.tmp_[0-9a-f]{16}$/.test(name))).toBe(true);
  expect(discovery.isSettled).toBe(true);
});

test('records are touched within 3 s, without being written again', async () => {
  const { discovery, fileOf } = await startPlace();
  await discovery.put(CHANNEL);
  await discovery.put(SOURCE);
  const before = [CHANNEL, SOURCE].map((record) => statSync(fileOf(record)));
  const isTouched = (): boolean =>
    [CHANNEL, SOURCE].every(
      (record, index) => statSync(fileOf(record)).mtimeMs > (before[index]?.mtimeMs ?? 0) + 500,
    );
  expect(await eventually(isTouched, 3000)).toBe(true);
  expect([CHANNEL, SOURCE].map((record) => statSync(fileOf(record)).ino)).toEqual(
    before.map(({ ino }) => ino),
  );
});

test('a record that vanished is written again, in the order of the puts', async () => {
  const { directory, discovery, fileOf } = await startPlace();
  await discovery.put(CHANNEL);
  await discovery.put(SOURCE);
  rmSync(directory, { recursive: true });
  expect(await eventually(() => existsSync(fileOf(SOURCE)), 4000)).toBe(true);
  expect(readFileSync(fileOf(CHANNEL), 'utf8')).toBe(CHANNEL.value);
  expect(statSync(fileOf(CHANNEL)).ctimeMs).toBeLessThanOrEqual(statSync(fileOf(SOURCE)).ctimeMs);
});

test('a stop withdraws what is left, the last put first', async () => {
  const { directory, discovery, fileOf } = await startPlace();
  await discovery.put(CHANNEL);
  await discovery.put(SOURCE);
  const order: string[] = [];
  for (const { bucket } of [CHANNEL, SOURCE]) {
    const inotify = watch(join(directory, bucket), () => order.push(bucket));
    cleanups.push(() => inotify.close());
  }
  await discovery.stop();
  expect([existsSync(fileOf(CHANNEL)), existsSync(fileOf(SOURCE))]).toEqual([false, false]);
  await eventually(() => order.length >= 2);
  expect(order[0]).toBe(SOURCE.bucket);
});

test('what others publish, change and take away is told within a second, nothing else is', async () => {
  const { directory, told, faults, fileOf } = await startPlace();
  expect(told).toEqual([new Map()]);
  const other = fileOf({ bucket: SOURCE.bucket, key: 'namespace/n/x/2' });
  publish(other, 'one');
  expect(await eventually(() => told.length === 2, 1000)).toBe(true);
  expect(told[1]).toEqual(new Map([['namespace/n/x/2', 'one']]));
  publish(fileOf({ bucket: SOURCE.bucket, key: 'namespace/other/x/2' }), 'not ours');
  writeFileSync(join(directory, SOURCE.bucket, 'namespace%2Fn%2fnot-exact'), 'wrong name');
  publish(other, 'two');
  expect(await eventually(() => told.length === 3, 1000)).toBe(true);
  expect(told[2]).toEqual(new Map([['namespace/n/x/2', 'two']]));
  utimesSync(other, new Date(), new Date());
  rmSync(other);
  expect(await eventually(() => told.length === 4, 1000)).toBe(true);
  expect(told[3]).toEqual(new Map());
  expect(faults).toEqual([]);
});

test('a record that nobody touches any more is gone after its 10 s, though its file stands', async () => {
  const { told, discovery, fileOf } = await startPlace();
  const path = fileOf({ bucket: SOURCE.bucket, key: 'namespace/n/x/2' });
  publish(path, 'left');
  await eventually(() => told.length === 2, 1000);
  const longAgo = new Date(Date.now() - 11_000);
  utimesSync(path, longAgo, longAgo);
  expect(await eventually(() => told.length === 3, 2000)).toBe(true);
  expect(told[2]).toEqual(new Map());
  // Still there for whoever looks for leftovers.
  expect(await discovery.list('v1/event_sources', 'namespace/n/')).toEqual(
    new Map([['namespace/n/x/2', 'left']]),
  );
  await discovery.evict({ bucket: SOURCE.bucket, key: 'namespace/n/x/2' });
  expect(existsSync(path)).toBe(false);
});

test('a record of more than a megabyte is left out and counted, the others are told', async () => {
  const { told, faults, fileOf } = await startPlace();
  publish(
    fileOf({ bucket: SOURCE.bucket, key: 'namespace/n/x/2' }),
    'x'.repeat(MAX_RECORD_BYTES + 1),
  );
  publish(fileOf({ bucket: SOURCE.bucket, key: 'namespace/n/x/3' }), 'small');
  expect(await eventually(() => told.length >= 2, 2000)).toBe(true);
  expect(told.at(-1)).toEqual(new Map([['namespace/n/x/3', 'small']]));
  expect(faults).toContain('too_large');
});

test('a pipe, a folder and a device in the place of records are faults, and hold nothing up', async () => {
  const { told, faults, discovery, fileOf } = await startPlace();
  const [pipe, folder, device, record] = ['2', '3', '4', '5'].map((name) =>
    fileOf({ bucket: SOURCE.bucket, key: `namespace/n/x/${name}` }),
  ) as [string, string, string, string];
  execFileSync('mkfifo', [pipe]);
  mkdirSync(folder);
  symlinkSync('/dev/zero', device);
  publish(record, 'small');
  expect(await eventually(() => told.length >= 2, 3000)).toBe(true);
  expect(told.at(-1)).toEqual(new Map([['namespace/n/x/5', 'small']]));
  expect(new Set(faults)).toEqual(new Set(['read']));
  await discovery.put(SOURCE);
  expect(discovery.isSettled).toBe(true);
});

test('a registry without a folder yet has no records, and that is no fault', async () => {
  const { faults, discovery } = await startPlace();
  expect(await discovery.list('v1/event_channels', 'namespace/n/')).toEqual(new Map());
  expect(faults).toEqual([]);
});

test('no more than 64 megabytes of records are read together', async () => {
  const { faults, discovery, directory } = await startPlace();
  const record = 'x'.repeat(MAX_RECORD_BYTES);
  mkdirSync(join(directory, CHANNEL.bucket), { recursive: true });
  for (let id = 10; id < 75; id++) {
    const key = `namespace/n/x/${id}`;
    writeFileSync(join(directory, CHANNEL.bucket, fileNameOf(key)), record);
  }
  expect((await discovery.list(CHANNEL.bucket, 'namespace/n/')).size).toBe(64);
  expect(faults).toEqual(['too_many']);
});

test('a directory that cannot be written is a fault, and is written once it can be', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'kvrelay-discovery-'));
  cleanups.push(() => rmSync(parent, { recursive: true, force: true }));
  // A file where a folder should be: root may write everywhere else.
  const directory = join(parent, 'taken');
  writeFileSync(directory, '');
  chmodSync(directory, 0o644);
  const faults: DiscoveryFault[] = [];
  const discovery = new FileDiscovery({ directory, onFault: (fault) => faults.push(fault) });
  discovery.watch('v1/event_sources', 'namespace/n/', () => undefined);
  cleanups.push(() => discovery.stop());
  await discovery.start();
  await discovery.put(CHANNEL);
  await discovery.put(SOURCE);
  expect([discovery.isAvailable, discovery.isSettled]).toEqual([false, false]);
  expect(new Set(faults)).toEqual(new Set(['read', 'write']));
  rmSync(directory);
  expect(await eventually(() => discovery.isSettled && discovery.isAvailable, 4000)).toBe(true);
  expect(readFileSync(join(directory, SOURCE.bucket, fileNameOf(SOURCE.key)), 'utf8')).toBe(
    SOURCE.value,
  );
});
