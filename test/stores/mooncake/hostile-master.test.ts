/** What a master lists, answers or counts that cannot be true, or cannot be taken. */
import { expect, test } from 'vitest';
import { MooncakeTrial } from '../../support/mooncake-trial.ts';

test('listed keys that are longer than those of events are not held, and counted', async () => {
  const long = ['x'.repeat(4097), 'y'.repeat(70_000), 'z'.repeat(2 << 20)];
  const trial = await MooncakeTrial.start({
    before: (master) => {
      for (const key of ['a', 'k'.repeat(4096), ...long]) void master.put(key, 'cpu', false);
    },
  });
  expect(trial.held('default', '')).toEqual(['a cpu', `${'k'.repeat(4096)} cpu`]);
  expect(trial.state.untrackedObjects).toBe(long.length);
});

test('a list without an end of line, as large as is read, is one key and no end', async () => {
  const trial = await MooncakeTrial.start({
    before: (master) => master.held.set('x'.repeat(200 << 20), new Set(['cpu'])),
  });
  expect(trial.state.objectCount).toBe(0);
  expect(trial.source.isSuspect).toBe(false);
});

test('two long keys do not share a request that would be longer than servers take', async () => {
  const keys = ['é', 'è', 'ê'].map((letter) => letter.repeat(1300));
  const trial = await MooncakeTrial.start({
    before: (master) => {
      for (const key of [...keys, 'è'.repeat(2048)]) void master.put(key, 'cpu', false);
    },
  });
  expect(trial.held('default', '')).toHaveLength(4);
  expect(Math.max(...trial.master.requests.map((line) => line.length))).toBeLessThan(13_000);
});

test('an event left out at the end of the last message is no restart of the master', async () => {
  const trial = await MooncakeTrial.start();
  const { master, source } = trial;
  await master.publish(master.event('stored', 'a', { tenant_id: 'other' }));
  await master.publish(master.event('stored', 'b'), master.event('stored', 'k'.repeat(5000)));
  await trial.taken(2);
  expect(source.metrics.droppedEvents.bad_key).toBe(1);
  const looks = (): number => master.requests.filter((line) => line.includes('status')).length;
  const before = looks();
  await trial.until(() => looks() > before, 'a look at the status');
  const { complete } = source.metrics.reconciliations;
  await master.put('c');
  await trial.taken(3);
  expect(trial.warnings).toEqual([]);
  expect(trial.held('other')).toEqual(['a cpu']);
  expect(source.metrics.reconciliations.complete).toBe(complete);
}, 30_000);
