/** What the page shows, against `/api/status`, while streams run and while they break. */
import type { Page } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import type { CoordinatorCompartment } from '../../src/status/coordinator-status.ts';
import { StatusServer } from '../../src/status/http-server.ts';
import type { RankStatus, StatusSnapshot } from '../../src/status/status-source.ts';
import {
  coordinatorStatus,
  FakeStatus,
  lmcacheStatus,
  rankStatus,
  snapshot,
  sourceStatus,
} from '../status/fake-status.ts';
import { RunningWorker } from '../status/running-worker.ts';
import { nextSnapshot, pageReaches, useBrowser } from './browser.ts';
import { DemoProcess } from './demo-process.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

// After the cleanups, as hooks run backwards: a page is judged while its relay still runs.
const browser = useBrowser();

async function startDemo(port = 0): Promise<DemoProcess> {
  const demo = await DemoProcess.start(port);
  cleanups.push(() => demo.kill());
  return demo;
}

/** Address of a server that shows it. */
async function served(status: FakeStatus): Promise<string> {
  const metrics = { contentType: 'text/plain', metrics: () => Promise.resolve('') };
  const warner = { warn: () => undefined };
  const index = { indexedRanks: () => [] };
  const objects = { objects: () => null };
  const local = { host: '127.0.0.1', port: 0 };
  const server = new StatusServer({ ...local, status, metrics, index, objects, warner });
  cleanups.push(() => server.stop());
  return (await server.start()).url;
}

const grouped = new Intl.NumberFormat('en');

/** Text of a row's cells in one rank's panel. */
async function panelRow(page: Page, panel: string, label: string): Promise<string[]> {
  const table = page.getByRole('table', { name: panel, exact: true });
  const row = table.locator('tr', {
    has: page.getByRole('rowheader', { name: label, exact: true }),
  });
  return await row.locator('td').allTextContents();
}

const EVENT_ROWS = {
  'Events received': 'received',
  'Events accepted': 'accepted',
  'Events filtered': 'filtered',
  'Events merged': 'coalesced',
  'Removes held back': 'suppressed_removes',
  'Events published': 'published_events',
  'Blocks published': 'published_blocks',
} as const;

async function expectRank(page: Page, rank: RankStatus): Promise<void> {
  for (const [label, counter] of Object.entries(EVENT_ROWS)) {
    const [total] = await panelRow(page, 'Events', label);
    expect([label, total]).toEqual([label, grouped.format(rank.counters[counter])]);
  }
  const values = {
    'Last sequence number': ['Engine', rank.engine.last_seq],
    Endpoint: ['Engine', rank.engine.endpoint],
    Worker: ['Identity', rank.worker_id],
    Publisher: ['Identity', rank.publisher_id],
    'Last event id': ['Identity', rank.last_event_id],
    'Plane address': ['Identity', rank.plane_endpoint],
    'Lost batches': ['Losses', grouped.format(rank.counters.lost_batches)],
    outbox: ['Queues', grouped.format(rank.queues.outbox ?? -1)],
  };
  for (const [label, [panel, value]] of Object.entries(values)) {
    expect([label, await panelRow(page, String(panel), label)]).toEqual([label, [value]]);
  }
  const tiers = await page.locator('.chart').first().locator('b').allTextContents();
  const { device, host_pinned, disk, external } = rank.blocks;
  expect(tiers).toEqual([device, host_pinned, disk, external].map((each) => grouped.format(each)));
}

async function stageTotals(page: Page): Promise<number[]> {
  const units = await page.locator('#flow .unit').allTextContents();
  return units.map((unit) => Number(unit.replace(/ .*/, '').replaceAll(',', '')));
}

function totalsOf({ ranks }: StatusSnapshot): number[] {
  const counters = ranks[0]?.counters;
  if (counters === undefined) return [];
  const { received, accepted, coalesced, suppressed_removes } = counters;
  const { published_blocks, published_events } = counters;
  return [received, accepted, coalesced, suppressed_removes, published_blocks, published_events];
}

test('the page shows the values of /api/status while a stream runs, and exactly once it rests', async () => {
  const demo = await startDemo();
  const page = await browser.open(demo.url);
  const before = totalsOf(await demo.status());
  await nextSnapshot(page);
  const shown = await stageTotals(page);
  const after = totalsOf(await demo.status());
  for (const [stage, total] of shown.entries()) {
    expect(total).toBeGreaterThanOrEqual(before[stage] ?? Number.NaN);
    expect(total).toBeLessThanOrEqual(after[stage] ?? Number.NaN);
  }
  expect(await page.locator('#flow .number').first().textContent()).toMatch(/^[1-9][\d,.]* \/s$/);
  expect(await page.locator('#flow .queue').last().textContent()).toMatch(/^\d+ in queue/);

  process.kill(demo.enginePid, 'SIGSTOP');
  let resting: StatusSnapshot = await demo.status();
  for (let last = -1; last !== totalsOf(resting)[0]; resting = await demo.status()) {
    last = totalsOf(resting)[0] ?? 0;
    await nextSnapshot(page);
  }
  expect(await stageTotals(page)).toEqual(totalsOf(resting));
  await expectRank(page, resting.ranks[0] as RankStatus);
  await page.locator('summary').click();
  for (const [name, value] of Object.entries(resting.settings)) {
    const shownValue = (await panelRow(page, 'Settings', name))[0];
    const expected = value === null ? 'not set' : value === '' ? '(empty)' : String(value);
    expect([name, shownValue]).toEqual([name, expected]);
  }
  process.kill(demo.enginePid, 'SIGCONT');
  await pageReaches(
    page,
    `window.snapshots.at(-1).ranks[0].counters.received > ${totalsOf(resting)[0]}`,
  );
});

test('a rank whose engine is gone is shown with its code and its remedy, until it is back', async () => {
  const running = await RunningWorker.start(4);
  cleanups.push(() => running.stop());
  running.play(50);
  const page = await browser.open(running.url);
  const attention = page.getByRole('region', { name: 'Needs attention' });
  expect(await attention.isVisible()).toBe(false);
  const announcement = page.getByRole('status');
  expect(await announcement.textContent()).toBe('Ready');

  running.killEngine(2);
  await attention.waitFor({ state: 'visible', timeout: 10_000 });
  const [rank] = (await running.status()).ranks.filter(({ degraded }) => degraded.length > 0);
  const notice = rank?.degraded[0];
  expect([rank?.dp_rank, notice?.code]).toEqual([2, 'engine_disconnected']);
  const text = (await attention.textContent()) ?? '';
  for (const part of ['engine_disconnected', 'rank 2', notice?.message, notice?.remedy]) {
    expect(text).toContain(part);
  }
  const box = await attention.boundingBox();
  expect((box?.y ?? 1e9) + (box?.height ?? 0)).toBeLessThan(900);
  const row = page.locator('tr.rank').nth(2);
  expect(await row.textContent()).toContain('not connected');
  expect(await page.locator('tr.degraded').count()).toBe(1);
  expect(await page.locator('#state').textContent()).toBe('Degraded');
  expect(await page.title()).toContain('Degraded');
  expect(await announcement.textContent()).toBe('Degraded: engine_disconnected on rank 2');

  await running.restartEngine(2);
  await attention.waitFor({ state: 'hidden', timeout: 15_000 });
  await pageReaches(page, "document.querySelector('[role=status]').textContent === 'Ready'");
});

test('the page says when the relay is gone, and goes on when another one answers', async () => {
  const first = await startDemo();
  const { port } = first;
  const page = await browser.open(first.url, { allowedErrors: /Failed to load resource|ERR_/ });
  const lost = page.getByRole('region', { name: 'No answer from the relay' });
  await nextSnapshot(page);
  await first.kill();
  await lost.waitFor({ state: 'visible', timeout: 10_000 });
  expect(await page.getByRole('status').textContent()).toBe('No answer from the relay');
  expect(await page.title()).toBe('No answer · kvrelay');
  await pageReaches(page, "/is \\d+ s old/.test(document.querySelector('#lost').textContent)");

  const second = await startDemo(port);
  const { started_at } = await second.status();
  await pageReaches(page, `window.snapshots.at(-1).started_at === '${started_at}'`, 25_000);
  await lost.waitFor({ state: 'hidden' });
  const shown = await nextSnapshot(page);
  expect(await panelRow(page, 'Identity', 'Publisher')).toEqual([shown.ranks[0]?.publisher_id]);
  expect(await page.locator('#link').textContent()).toBe('live');
});

test('an LMCache beside the engine has its tables, and none without one', async () => {
  const status = new FakeStatus();
  const page = await browser.open(await served(status));
  expect(await page.locator('#lmcache').isVisible()).toBe(false);
  status.snapshot = snapshot({ lmcache: lmcacheStatus() });
  await page.locator('#lmcache').waitFor({ state: 'visible' });
  expect(await panelRow(page, 'Requests', 'In flight')).toEqual(['2']);
  const chart = page.locator('#lmcache-chart').getByRole('img');
  expect(await chart.getAttribute('aria-label')).toBe(
    'Hit rate over the last 1 h. Tokens found: now 75.0 %, lowest 75.0 %, highest 75.0 %',
  );
  expect(await panelRow(page, 'Hit rate', 'Last minute')).toEqual(['75.0 %']);
  expect(await panelRow(page, 'Hit rate', 'Last 10 minutes')).toEqual(['–']);
  expect(await panelRow(page, 'Traffic', 'L2 fs')).toEqual(['2 KiB', '1 KiB']);
  expect(await panelRow(page, 'Evictions', 'From L2')).toEqual(['6']);
  expect(await panelRow(page, 'Throughput, GB/s', 'L2 fs')).toEqual(['1.5', '–']);
  expect(await panelRow(page, 'Failures', 'l1_read_failure l1_retrieve not_found')).toEqual(['4']);
  expect(await panelRow(page, 'Models', 'm1')).toEqual(['64', '75.0 %']);
  expect(await panelRow(page, 'Contracts', 'L1_READ_FINISHED keys, missing')).toEqual(['5']);
});

test('chunks that are not placed are shown with the reason, those of no reason are not', async () => {
  const status = new FakeStatus();
  const unplaced = { unknown_parent: 0, chunk_size: 3000 };
  const counts = { chunks: 5, placed_blocks: 32, unplaced };
  const placement = { pattern: 'chunks', storage_tier: 'host_pinned', ...counts } as const;
  status.snapshot = snapshot({ sources: [sourceStatus({ source: 'lmcache_stream', placement })] });
  const page = await browser.open(await served(status));
  const row = (label: string): Promise<string[]> => panelRow(page, 'lmcache_stream', label);
  expect(await row('Blocks placed at routers')).toEqual(['32']);
  expect(await row('Chunks not placed, chunk size')).toEqual(['3,000']);
  expect(await row('Chunks not placed, unknown parent')).toEqual([]);
});

test("what LMCache's servers hold has tables, by server, tier and backend", async () => {
  const status = new FakeStatus();
  const endpoint = 'http://127.0.0.1:9300';
  status.snapshot = snapshot({
    sources: [sourceStatus({ source: 'lmcache_coordinator', endpoint })],
    lmcache_coordinator: coordinatorStatus(),
  });
  const page = await browser.open(await served(status));
  expect(await panelRow(page, 'LMCache holds', 'mp-1, l1 dram')).toEqual([
    '1,500',
    '3 KiB',
    '75.0 % of 4 KiB',
  ]);
  expect(await panelRow(page, 'LMCache holds', 'pool, l2 s3')).toEqual(['4', '1 KiB', '–']);
  expect(await panelRow(page, 'LMCache servers', 'mp-1')).toEqual(['in part', '3', '1.2 s ago']);
  expect(await panelRow(page, 'LMCache servers', 'coordinator behind')).toEqual([
    'no answer',
    '–',
    'none yet',
  ]);
});

test('markup in a value is shown as text', async () => {
  const [compartment] = coordinatorStatus().compartments as [CoordinatorCompartment];
  const evil = '<img src=x onerror=document.title=1><script>1</script>';
  const status = new FakeStatus();
  const degraded = [{ code: 'engine_gap', message: evil, remedy: evil } as const];
  const rank = rankStatus(0, { degraded, worker_id: evil, queues: { [evil]: 1 } });
  Object.assign(rank.filtered_by_reason, { [evil]: 1000 });
  status.snapshot = snapshot({
    version: evil,
    settings: { [evil]: evil },
    ranks: [rank],
    sources: [sourceStatus({ source: evil, endpoint: evil })],
    lmcache: lmcacheStatus({ version: evil, failures: { [evil]: 3 } }),
    lmcache_coordinator: coordinatorStatus({
      compartments: [{ ...compartment, instance_id: evil, backend: evil }],
    }),
  });
  const page = await browser.open(await served(status));
  expect(await page.locator('img, main script').count()).toBe(0);
  expect(await page.title()).toBe('Ready · kvrelay');
  expect(await page.locator('#version').textContent()).toBe(evil);
  expect(await panelRow(page, 'Filter reasons', evil)).toEqual(['1,000']);
  expect(await panelRow(page, 'Failures', evil)).toEqual(['3']);
  const isText = async (): Promise<boolean> =>
    ((await page.locator('#notices').textContent()) ?? '').includes(evil);
  expect(await isText()).toBe(true);
});
