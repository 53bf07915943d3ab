/** Trials of stores: media, outages, gaps and clears, as the object stream and the listing show them. */
import { expect, test } from 'vitest';
import { Clr, Rm, St, StoreTrial } from '../support/store-trial.ts';

test('T6: an eviction from memory is no loss where the disk copy stays', async () => {
  const trial = await StoreTrial.start();
  await trial.send(St('a', 'cpu'));
  await trial.stream(1);
  expect(await trial.listed()).toEqual(['a cpu']);
  await trial.send(St('a', 'disk'));
  await trial.stream(2);
  expect(await trial.listed()).toEqual(['a cpu,disk']);
  await trial.send(Rm('a', 'cpu'));
  expect(await trial.stream(3)).toEqual(['a cpu', 'a cpu,disk', 'a disk']);
  expect(await trial.listed()).toEqual(['a disk']);
});

test('T8: a store that is away for 20 s is found again, without a busy loop', async () => {
  const trial = await StoreTrial.start();
  const { endpoint } = trial.master;
  await trial.send(St('a'));
  await trial.stream(1);
  const before = await trial.metric('kvrelay_source_connects_total', { source: 'mooncake' });
  trial.master.stopPublishing();
  await trial.until(() => !trial.source.connected, 'the disconnect');
  expect(trial.source.degraded.map(({ code }) => code)).toEqual(['store_suspect']);
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  await trial.master.publishAt(endpoint);
  // The cap between two attempts is 5 s.
  await trial.until(() => trial.source.connected, 'the reconnect', 15_000);
  await trial.master.subscribed();
  await trial.send(St('b'));
  expect(await trial.stream(2)).toEqual(['a cpu', 'b cpu']);
  const tries =
    (await trial.metric('kvrelay_source_connects_total', { source: 'mooncake' })) - before;
  expect(tries).toBeGreaterThan(0);
  expect(tries).toBeLessThan(30);
}, 60_000);

test('T9: without a master a gap gives up what was held, and the stream goes on', async () => {
  const trial = await StoreTrial.start();
  await trial.send(St('a'));
  await trial.send(St('b'));
  trial.master.lose(2);
  await trial.send(St('c'));
  expect(await trial.stream(4)).toEqual([
    'a cpu',
    'b cpu',
    'default cleared (invalidated)',
    'c cpu',
  ]);
  expect(await trial.listed()).toEqual(['c cpu']);
  expect(trial.source.counters).toMatchObject({ lost_messages: 2, invalidated_objects: 2 });
  expect(await trial.metric('kvrelay_source_lost_messages_total')).toBe(2);
  expect(trial.events[2]).toMatchObject({ type: 'cleared', object_count: 2 });
});

test('T12: a clear of one tenant leaves another alone', async () => {
  const trial = await StoreTrial.start();
  await trial.send(St('a', 'cpu', 't1'), St('b', 'cpu', 't2'));
  await trial.send(Clr('t1'));
  expect(await trial.stream(3)).toEqual(['a cpu', 'b cpu', 't1 cleared (event)']);
  expect(await trial.listed()).toEqual(['t2/b cpu']);
});
