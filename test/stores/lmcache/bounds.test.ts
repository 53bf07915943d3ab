/** What is kept of the bus, and what an event costs, has a bound whatever is sent. */
import { expect, test } from 'vitest';
import { AdapterTraffic } from '../../../src/stores/lmcache/adapter-traffic.ts';
import { BusMetrics } from '../../../src/stores/lmcache/bus-metrics.ts';
import { LinkedMap } from '../../../src/stores/lmcache/linked-map.ts';
import { Pairs } from '../../../src/stores/lmcache/pairs.ts';
import { RecentSums } from '../../../src/stores/lmcache/recent-sums.ts';
import { RequestTracker } from '../../../src/stores/lmcache/request-tracker.ts';
import { shortKey, shortLabel } from '../../../src/stores/lmcache/short-key.ts';
import { Tracked } from '../../../src/stores/lmcache/tracked.ts';
import { busEvent } from './bus-events.ts';

const FULL = 65_536;
const ROUNDS = 400_000;
const BOUNDS = { maxPending: FULL, timeoutS: 3600 };

/** A pass over the full map for each entry takes far longer. */
const GENEROUS_MS = 15_000;

test(
  'a full table of lives takes a new one without a pass over it',
  () => {
    let dropped = 0;
    const tracked = new Tracked<number>(FULL, () => {
      dropped++;
    });
    for (let index = 0; index < ROUNDS; index++) tracked.set(`k${index}`, index);
    expect([tracked.size, dropped]).toEqual([FULL, ROUNDS - FULL]);
    expect(tracked.oldest).toMatchObject({ key: `k${ROUNDS - FULL}` });
  },
  GENEROUS_MS,
);

test(
  'full pairs take a new start without a pass over them',
  () => {
    const pairs = new Pairs<null>(BOUNDS);
    for (let index = 0; index < ROUNDS; index++) pairs.start(`k${index}`, 1, null);
    expect([pairs.size, pairs.evicted]).toEqual([FULL, ROUNDS - FULL]);
  },
  GENEROUS_MS,
);

test(
  'a full list of requests takes a new one without a pass over it',
  () => {
    const requests = new RequestTracker(BOUNDS);
    for (let index = 0; index < ROUNDS; index++)
      requests.push(busEvent('MP_REQUEST_START', {}, { session: `r${index}` }));
    expect([requests.inFlight, requests.evicted]).toEqual([FULL, ROUNDS - FULL]);
  },
  GENEROUS_MS,
);

test('LinkedMap keeps the order of first putting in, through any removal', () => {
  const map = new LinkedMap<number>();
  for (const key of ['a', 'b', 'c', 'd']) map.set(key, 1);
  map.set('a', 2);
  expect(map.take('c')).toBe(1);
  expect(map.take('c')).toBeUndefined();
  expect(map.take('a')).toBe(2);
  map.set('a', 3);
  expect(map.take('d')).toBe(1);
  expect([map.size, map.oldest?.key, [...map.values()]]).toEqual([2, 'b', [1, 3]]);
  map.clear();
  expect([map.size, map.oldest]).toEqual([0, undefined]);
  map.set('z', 1);
  expect(map.oldest?.key).toBe('z');
});

test('a long text is a short key, another one for another text', () => {
  const [one, other] = ['1', '2'].map((end) => shortKey('x'.repeat(1_000_000) + end));
  expect(one).toHaveLength(64);
  expect(other).not.toBe(one);
  expect(shortKey('r1')).toBe('r1');
  expect(shortLabel('y'.repeat(1_000_000))).toHaveLength(256);
});

const METRICS = {
  sampleRate: 1,
  maxTracked: 100,
  maxPending: 100,
  timeoutS: 60,
  maxLabelValues: 9,
};

/** Every request uses every block; `counts` tells what was given up. */
function blocksUsedBy(requests: number, blocks: number): BusMetrics {
  const metrics = new BusMetrics(METRICS);
  for (let request = 0; request < requests; request++) {
    const new_block_ids = Array.from({ length: blocks }, (_, index) => index);
    const records = [{ req_id: `r${request}`, new_block_ids, new_token_ids: new_block_ids }];
    metrics.push(
      busEvent('MP_VLLM_BLOCK_ALLOCATION', { instance_id: 1, model_name: 'm', records }),
    );
  }
  return metrics;
}

test('owners of blocks that never end their requests are given up', () => {
  // 80 requests own 10 blocks each: the bound of 400 is met by the first 40.
  expect(blocksUsedBy(80, 10).counts.untracked).toBe(40);
  expect(blocksUsedBy(40, 10).counts.untracked).toBe(0);
});

test('requests beyond the bound are forgotten by the blocks too', () => {
  const metrics = blocksUsedBy(150, 1);
  expect(metrics.counts.untracked).toBe(50);
  for (let request = 0; request < 150; request++)
    metrics.push(busEvent('MP_VLLM_END_SESSION', { request_id: `r${request}` }));
  const again = { req_id: 'x', new_block_ids: [0], new_token_ids: [0] };
  const other = { req_id: 'y', new_block_ids: [0], new_token_ids: [1] };
  for (const [record, at] of [
    [again, 10],
    [other, 30],
  ] as const) {
    const metadata = { instance_id: 1, model_name: 'm', records: [record] };
    metrics.push(busEvent('MP_VLLM_BLOCK_ALLOCATION', metadata, { at }));
  }
  // A block with an owner that never goes would not count the use at 10 as a new one.
  const [idle] = metrics.series.histograms.get('l0_block_idle_before_evict')?.values() ?? [];
  expect(idle?.histogram.sum).toBe(20);
});

test('a time between two clocks that is below 0 is no observation', () => {
  const metrics = new BusMetrics(METRICS);
  metrics.series.observe('real_reuse_gap', -5);
  expect(metrics.series.histograms.get('real_reuse_gap')?.size).toBe(0);
});

test('windows follow a clock that was set back', () => {
  const sums = new RecentSums(10, 6);
  sums.add(1_000_000, 3);
  sums.rewind(1000);
  sums.add(1005, 4);
  expect(sums.sum()).toBe(7);
  sums.advance(1070);
  expect(sums.sum()).toBe(0);
});

test('a load task of an LMCache that has restarted brings no bytes', () => {
  const traffic = new AdapterTraffic(METRICS);
  const task = { request_id: 1, adapter_index: 0, l2_name: 'disk' };
  traffic.push(busEvent('L2_LOAD_TASK_SUBMITTED', { ...task, total_bytes: 100 }));
  traffic.restart();
  traffic.push(busEvent('L2_LOAD_TASK_COMPLETED', task));
  expect(traffic.adapters.get('disk')).toMatchObject({ loadTasks: 1, loadedBytes: 0 });
});
