import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BusEvent } from '../../../src/engines/lmcache/contracts.ts';
import { AdapterTraffic } from '../../../src/stores/lmcache/adapter-traffic.ts';
import { ALARM_KEYS, FailureWatch, WINDOW_S } from '../../../src/stores/lmcache/failure-watch.ts';
import { HitRate } from '../../../src/stores/lmcache/hit-rate.ts';
import { Pairs } from '../../../src/stores/lmcache/pairs.ts';
import { RequestTracker } from '../../../src/stores/lmcache/request-tracker.ts';
import { busEvent, objectKeys } from './bus-events.ts';

const BOUNDS = { maxPending: 3, timeoutS: 10 };

describe('Pairs', () => {
  test('ties an end to its start, once', () => {
    const pairs = new Pairs<string>(BOUNDS);
    pairs.start('a', 5, 'value');
    expect(pairs.end('a', 7.5)).toEqual({ seconds: 2.5, value: 'value' });
    expect(pairs.end('a', 8)).toBeNull();
    expect(pairs.endsAlone).toBe(1);
  });

  test('a second start replaces the first', () => {
    const pairs = new Pairs<number>(BOUNDS);
    pairs.start('a', 1, 1);
    pairs.start('a', 2, 2);
    expect(pairs.end('a', 3)).toEqual({ seconds: 1, value: 2 });
    expect(pairs.size).toBe(0);
  });

  test('a start that is replaced waits from then on, and hides no older one', () => {
    const pairs = new Pairs<number>(BOUNDS);
    pairs.start('a', 1, 1);
    pairs.start('b', 2, 2);
    pairs.start('a', 9, 3);
    pairs.start('c', 13, 4);
    expect([pairs.size, pairs.timedOut]).toEqual([2, 1]);
    expect(pairs.end('b', 14)).toBeNull();
  });

  test('gives up what waits too long, and the oldest of too many', () => {
    const pairs = new Pairs<null>(BOUNDS);
    pairs.start('old', 1, null);
    pairs.start('a', 12, null);
    expect([pairs.size, pairs.timedOut, pairs.evicted]).toEqual([1, 1, 0]);
    for (const key of ['b', 'c', 'd']) pairs.start(key, 12, null);
    expect([pairs.size, pairs.timedOut, pairs.evicted]).toEqual([3, 1, 1]);
    expect(pairs.end('a', 13)).toBeNull();
    expect(pairs.end('d', 13)).not.toBeNull();
  });
});

function tracked(events: readonly BusEvent[], bounds = BOUNDS): RequestTracker {
  const tracker = new RequestTracker(bounds);
  for (const event of events) tracker.push(event);
  return tracker;
}

describe('RequestTracker', () => {
  const start = busEvent('MP_REQUEST_START', {});
  const submitted = busEvent('MP_STORE_SUBMITTED', { device: 'cuda:0' });
  const finished = busEvent('MP_STORE_END', { device: 'cuda:0' });
  const end = busEvent('MP_REQUEST_END', {});

  test.each([
    ['END, with no transfer under way', [start, end]],
    ['the GPU callback that comes after END', [start, submitted, end, finished]],
    ['END, where the callback came first', [start, submitted, finished, end]],
    ['the last of two callbacks', [start, submitted, submitted, finished, end, finished]],
    ['END, where the callback even came before SUBMITTED', [start, finished, submitted, end]],
  ])('a request is done with %s', (_, events) => {
    const before = tracked(events.slice(0, -1));
    expect([before.inFlight, before.completed]).toEqual([1, 0]);
    const after = tracked(events);
    expect([after.inFlight, after.completed, after.outOfOrder]).toEqual([0, 1, 0]);
  });

  test('counts the transfers under way', () => {
    expect(tracked([start, submitted, submitted, finished, end]).openTransfers).toBe(1);
  });

  test('a lookup that is repeated is the same request', () => {
    const tracker = tracked([start, end, start, start]);
    expect([tracker.inFlight, tracker.completed]).toEqual([1, 1]);
  });

  test('sentinels without a START are out of order, late callbacks are not', () => {
    const tracker = tracked([submitted, end, finished, busEvent('CB_REQUEST_END', {})]);
    expect([tracker.inFlight, tracker.completed, tracker.outOfOrder]).toEqual([0, 0, 2]);
  });

  test('a blend request ends with the last worker, whose fellows ended it before', () => {
    const retrieve = busEvent('CB_RETRIEVE_SUBMITTED', { instance_id: 1 });
    const done = busEvent('CB_RETRIEVE_END', { success: true });
    const open = busEvent('CB_REQUEST_START', {});
    const close = busEvent('CB_REQUEST_END', {});
    const before = tracked([open, retrieve, retrieve, done, close]);
    expect([before.inFlight, before.completed]).toEqual([1, 0]);
    const after = tracked([open, retrieve, retrieve, done, close, done, close]);
    expect([after.inFlight, after.completed, after.outOfOrder]).toEqual([0, 1, 0]);
  });

  test('gives up a request without news, and the oldest of too many', () => {
    const open = (session: string, at: number): BusEvent =>
      busEvent('MP_REQUEST_START', {}, { session, at });
    const other = busEvent('L1_EVICTION_LOOP_TICK', {}, { at: 12, session: '' });
    const old = tracked([open('a', 1), other]);
    expect([old.inFlight, old.timedOut]).toEqual([0, 1]);
    const many = tracked(['a', 'b', 'c', 'd', 'e'].map((session) => open(session, 1)));
    expect([many.inFlight, many.evicted]).toEqual([3, 2]);
  });

  test('whatever order the callbacks of many requests come in, all of them are done at the end', () => {
    const requests = fc.array(fc.nat(3), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(requests, fc.infiniteStream(fc.nat()), (transfers, random) => {
        const late: BusEvent[] = [];
        const first: BusEvent[] = [];
        for (const [index, count] of transfers.entries()) {
          const of = { session: `r${index}` };
          first.push(busEvent('MP_REQUEST_START', {}, of));
          for (let transfer = 0; transfer < count; transfer++) {
            first.push(busEvent('MP_RETRIEVE_SUBMITTED', { device: 'd' }, of));
            late.push(busEvent('MP_RETRIEVE_END', { device: 'd' }, of));
          }
          late.push(busEvent('MP_REQUEST_END', {}, of));
        }
        const shuffled = late
          .map((event) => ({ event, rank: random.next().value as number }))
          .sort((one, other) => one.rank - other.rank)
          .map(({ event }) => event);
        const tracker = tracked([...first, ...shuffled], { maxPending: 100, timeoutS: 10 });
        expect(tracker.inFlight).toBe(0);
        expect(tracker.completed).toBe(transfers.length);
      }),
    );
  });
});

test('AdapterTraffic adds up bytes, tasks and failures by adapter', () => {
  const traffic = new AdapterTraffic(BOUNDS);
  const load = { request_id: 1, adapter_index: 0 };
  for (const event of [
    busEvent('L2_STORE_COMPLETED', { l2_name: 'fs', bytes_transferred: 10, failed_count: 0 }),
    busEvent('L2_STORE_COMPLETED', { l2_name: 'fs', bytes_transferred: 0, failed_count: 3 }),
    busEvent('L2_LOAD_TASK_SUBMITTED', { ...load, total_bytes: 7 }),
    busEvent('L2_LOAD_TASK_COMPLETED', { ...load, l2_name: 'nixl' }),
    busEvent('L2_LOAD_TASK_COMPLETED', { ...load, l2_name: 'nixl' }),
    busEvent('L2_PREFETCH_LOAD_COMPLETED', { failed_count: 2 }),
  ])
    traffic.push(event);
  const none = { storedBytes: 0, loadedBytes: 0, storeTasks: 0, loadTasks: 0, failedStores: 0 };
  expect([...traffic.adapters]).toEqual([
    ['fs', { ...none, storedBytes: 10, storeTasks: 2, failedStores: 3 }],
    ['nixl', { ...none, loadedBytes: 7, loadTasks: 2 }],
  ]);
  expect(traffic.failedLoads).toBe(2);
});

test('AdapterTraffic puts what is too many names together', () => {
  const traffic = new AdapterTraffic(BOUNDS);
  for (let index = 0; index < 100; index++)
    traffic.push(busEvent('L2_STORE_COMPLETED', { l2_name: `l2-${index}`, bytes_transferred: 1 }));
  expect(traffic.adapters.size).toBe(33);
  expect(traffic.adapters.get('other')?.storedBytes).toBe(68);
});

describe('FailureWatch', () => {
  const failed = (count: number, at: number): BusEvent =>
    busEvent('L1_READ_FAILED', { keys: objectKeys(count) }, { at });

  test('alarms on the keys of a window, until it has passed', () => {
    const watch = new FailureWatch();
    watch.push(failed(ALARM_KEYS - 1, 1000));
    expect(watch.isAlarming).toBe(false);
    watch.push(failed(1, 1100));
    expect(watch.isAlarming).toBe(true);
    watch.advance(1000 + WINDOW_S - 1);
    expect(watch.isAlarming).toBe(true);
    watch.advance(1000 + WINDOW_S);
    expect([watch.isAlarming, watch.recentKeys]).toEqual([false, 1]);
    watch.advance(1e9);
    expect(watch.recentKeys).toBe(0);
  });

  test('counts a late event, and no other failure', () => {
    const watch = new FailureWatch();
    watch.push(failed(1, 1000));
    watch.push(failed(2, 900));
    watch.push(busEvent('L1_ALLOCATION_FAILED', { keys: objectKeys(50) }, { at: 1000 }));
    expect(watch.recentKeys).toBe(3);
  });
});

test('HitRate tells the share of tokens over a while, and of each minute', () => {
  const rate = new HitRate();
  const lookup = (at: number, requested_tokens: number, hit_tokens: number): BusEvent =>
    busEvent('MP_LOOKUP_PREFETCH_END', { requested_tokens, hit_tokens }, { at });
  expect([rate.over(1), rate.over(60)]).toEqual([null, null]);
  rate.push(lookup(6000, 100, 100));
  rate.push(lookup(6065, 100, 50));
  rate.push(lookup(6119, 300, 0));
  expect([rate.over(1), rate.over(10)]).toEqual([0.125, 0.3]);
  const minutes = rate.byMinute();
  expect([minutes.length, minutes.at(-1), minutes.at(-2), minutes.at(-3)]).toEqual([
    60,
    0.125,
    1,
    null,
  ]);
  rate.advance(6170);
  expect([rate.over(1), rate.over(2)]).toEqual([null, 0.125]);
  rate.advance(6119 + 3600);
  expect(rate.over(60)).toBeNull();
});
