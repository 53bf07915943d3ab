/** Trials of storage tiers: blocks on the host, on disk and elsewhere, apart from those on the device. */
import { expect, test } from 'vitest';
import { SocketTrial } from '../support/socket-trial.ts';
import { A, B, blocksOf, f, Rm, St, Trial } from '../support/trials.ts';

const CPU = { medium: 'CPU' };

test('T1: an offload placeholder makes no block up, is counted, and the stream goes on', () => {
  const trial = new Trial();
  const placeholder = St(101, { tokens: [], size: 0, ...CPU });
  const store = St(102, { tokens: B, ...CPU });
  expect(trial.send(f(0, [placeholder]), f(1, [store]))).toEqual(['S#1(∅→102)@host_pinned']);
  expect(trial.metrics.emptyStores).toBe(1);
  expect(trial.metrics.accepted.stored).toBe(2);
  expect(trial.index).toEqual(['102@host_pinned']);
});

test('T1: nor does it in the same batch, where it separates nothing', () => {
  const trial = new Trial();
  const placeholder = St(101, { tokens: [], size: 0, ...CPU });
  const events = [St(102, CPU), placeholder, St(103, { parent: 102, ...CPU })];
  expect(trial.send(f(0, events))).toEqual(['S#1(∅→102,103)@host_pinned']);
  expect(trial.metrics.emptyStores).toBe(1);
});

test('T2: a remove acts on its tier only', () => {
  const trial = new Trial();
  expect(trial.send(f(0, [St(101)]))).toEqual(['S#1(∅→101)']);
  expect(trial.send(f(1, [St(101, CPU)]))).toEqual(['S#2(∅→101)@host_pinned']);
  expect(trial.send(f(2, [Rm(101)]))).toEqual(['R#3(101)']);
  expect(trial.index).toEqual(['101@host_pinned']);
  expect(trial.send(f(3, [Rm(101, CPU)]))).toEqual(['R#4(101)@host_pinned']);
  expect(trial.index).toEqual([]);
});

test('T4: storage is disk, remote localities are filtered, and external stays external', () => {
  const trial = new Trial();
  const storage = f(0, [St(101, { medium: 'STORAGE' })]);
  expect(trial.send(storage)).toEqual(['S#1(∅→101)@disk']);
  const remote = { ...St(102, { medium: 'STORAGE' }), locality: 'REMOTE' };
  expect(trial.send(f(1, [remote, { ...remote, medium: 'GPU' }]))).toEqual([]);
  expect(trial.metrics.filtered.stored.non_local_locality).toBe(2);
  const external = f(2, [{ ...St(103, { medium: 'EXTERNAL' }), locality: 'LOCAL' }]);
  expect(trial.send(external)).toEqual(['S#2(∅→103)@external']);
  expect(trial.index).toEqual(['101@disk', '103@external']);
});

test('T11: events are counted by kind and medium, and a host-tier store stands alone', async () => {
  const trial = await SocketTrial.start();
  const counted = async (medium: string, event_type = 'stored'): Promise<number[]> =>
    trial.metric('kvrelay_engine_events_total', { event_type, medium });
  await trial.send(f(0, [St(101, { tokens: A })]));
  expect(await trial.output(1)).toEqual(['S#1(∅→101)']);
  expect([await counted('GPU'), await counted('CPU')]).toEqual([[1], [0]]);

  await trial.send(f(1, [St(102, { parent: 101, tokens: B, ...CPU })]));
  expect(await trial.output(2)).toContain('S#2(101→102)@host_pinned');
  expect([await counted('GPU'), await counted('CPU')]).toEqual([[1], [1]]);

  await trial.send(f(2, [St(103, { medium: 'OBJ' })]));
  await trial.send(f(3, [Rm(103, { medium: 'OBJ' }), St(104, { medium: 'TAPE' })]));
  expect(await trial.output(4)).toEqual([
    'S#1(∅→101)',
    'S#2(101→102)@host_pinned',
    'S#3(∅→103)@external',
    'R#4(103)@external',
  ]);
  expect([await counted('OBJ'), await counted('OBJ', 'removed')]).toEqual([[1], [1]]);
  expect(await counted('other')).toEqual([1]);
  expect(trial.rank().filtered_by_reason).toEqual({ unknown_medium: 1 });
});

test('T11: a host-tier store needs no device store before it', () => {
  const trial = new Trial();
  const store = St(102, { parent: 101, tokens: B, ...CPU });
  const [published] = trial.events(f(0, [store]));
  expect(published?.blocks).toEqual(blocksOf(St(102, { tokens: B })));
  expect(trial.index).toEqual(['102@host_pinned']);
});

test('T1: a placeholder is no block of another size', async () => {
  const trial = await SocketTrial.start();
  await trial.send(f(0, [St(101, { tokens: [], size: 0, medium: 'CPU' })]));
  await trial.until(() => trial.rank().counters.accepted === 1);
  expect(trial.rank().degraded).toEqual([]);
});
