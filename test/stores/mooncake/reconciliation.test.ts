/** Loss, and what the master makes good again: a real socket, a real HTTP server, a master played. */
import { expect, test } from 'vitest';
import { MooncakeTrial } from '../../support/mooncake-trial.ts';

test('a late joiner asks for what was stored before', async () => {
  const trial = await MooncakeTrial.start({
    before: (master) => {
      for (const key of ['a', 'b@0', 'ключ +%/&#?', '__proto__'])
        void master.put(key, 'cpu', false);
      void master.put('b@0', 'disk', false);
    },
  });
  expect(trial.held('default', '')).toHaveLength(4);
  // The first event tells the backend's name: the answers come again under it.
  await trial.master.put('c');
  await trial.until(() => trial.held().length === 5);
  trial.expectAsMaster();
  expect(trial.held('default', '')).toEqual([]);
});

test('keys are asked for in requests that servers take, however long they are spelled', async () => {
  const trial = await MooncakeTrial.start({
    before: (master) => {
      for (let index = 0; index < 100; index++) {
        void master.put(`${index}${'@'.repeat(index * 13)}`, 'cpu', false);
      }
      void master.put('é'.repeat(2000), 'disk', false);
    },
  });
  expect(trial.held('default', '')).toHaveLength(101);
  expect(Math.max(...trial.master.requests.map((line) => line.length))).toBeLessThan(16_000);
});

test('a first message that is not the first of its publisher: what came before is asked for', async () => {
  const trial = await MooncakeTrial.start();
  const { master, source } = trial;
  const { complete } = source.metrics.reconciliations;
  // Linked and compared, and then the first messages are dropped by the publisher.
  master.held.set('missed', new Set(['cpu']));
  master.lose(5);
  await master.put('seen');
  await trial.reconciled(complete);
  trial.expectAsMaster();
  expect(source.metrics.lostMessages).toBe(0);
});

test('a gap: the affected state is suspect, is compared, and what was missed is made good', async () => {
  const trial = await MooncakeTrial.start();
  const { master, source } = trial;
  for (const key of ['a', 'b', 'c']) await master.put(key);
  await trial.until(() => trial.held().length === 3);
  await trial.settled();
  const { complete } = source.metrics.reconciliations;
  // Missed: b goes, c gets a disk copy and loses memory, d comes.
  master.held.delete('b');
  master.held.set('c', new Set(['disk']));
  await master.put('d', 'cpu', false);
  master.lose(3);
  await master.put('e');
  await trial.until(() => source.metrics.lostMessages === 3);
  await trial.reconciled(complete);
  trial.expectAsMaster();
  expect(source.metrics).toMatchObject({ lostMessages: 3, restarts: 0 });
  expect(trial.warnings).toContain('store_gap');
});

test('a restart without a sign: the number goes backwards, and the state is compared', async () => {
  const trial = await MooncakeTrial.start();
  const { master, source } = trial;
  for (const key of ['a', 'b', 'c']) await master.put(key);
  await trial.until(() => trial.held().length === 3);
  await trial.settled();
  const { complete } = source.metrics.reconciliations;
  master.restart();
  await master.put('z');
  await trial.until(() => source.metrics.restarts === 1);
  await trial.reconciled(complete);
  expect(trial.held()).toEqual(['z cpu']);
});

test('a master that comes back under another name: what stood under the old one is given up', async () => {
  const trial = await MooncakeTrial.startHolding('a');
  const { master } = trial;
  master.restart();
  master.held.set('z', new Set(['cpu']));
  await master.publish(master.event('stored', 'z', { backend_id: 'other' }));
  await trial.until(() => trial.held('default', 'other').length === 1);
  expect(trial.held()).toEqual([]);
  expect(trial.told).toContain('x default invalidated');
});

test('events that arrive while an answer is on its way are held, and applied behind it', async () => {
  const trial = await MooncakeTrial.start();
  const { master, source } = trial;
  await master.put('a');
  await master.put('b');
  await trial.until(() => trial.held().length === 2);
  await trial.settled();
  const { complete } = source.metrics.reconciliations;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const asked: string[][] = [];
  master.beforeAnswer = async (keys) => {
    asked.push([...keys]);
    if (asked.length === 1) await released;
  };
  master.lose(1);
  await master.put('c');
  await trial.until(() => asked.length === 1);
  const before = source.metrics.messages;
  // Behind the question: b goes, a comes on disk.
  const told = trial.told.length;
  master.held.set('a', new Set(['cpu', 'disk']));
  master.held.delete('b');
  await master.publish(
    master.event('removed', 'b'),
    master.event('stored', 'a', { medium: 'disk' }),
  );
  await trial.taken(before + 1);
  expect(source.reading().heldMessages).toBe(1);
  expect(trial.told.length).toBe(told);
  // The answer still has b: it was made before.
  release();
  await trial.reconciled(complete);
  expect(trial.told.slice(told)).toEqual(['-b', '+a cpu,disk']);
  trial.expectAsMaster();
});

test('a listed object that an event brings meanwhile, on another medium, is asked for all the same', async () => {
  const trial = await MooncakeTrial.startHolding('a');
  const { master, source } = trial;
  const { complete } = source.metrics.reconciliations;
  // Missed on its way here, and in the list.
  await master.put('b', 'cpu', false);
  let isFirst = true;
  master.beforeAnswer = async () => {
    if (!isFirst) return;
    isFirst = false;
    const before = source.metrics.messages;
    // It takes the place of one that goes, so the walk over what is held does not meet it.
    master.held.delete('a');
    await master.publish(master.event('removed', 'a'));
    await master.put('b', 'disk');
    await trial.taken(before + 2);
  };
  master.lose(1);
  await master.put('c');
  await trial.reconciled(complete);
  expect(trial.held()).toContain('b cpu,disk');
  trial.expectAsMaster();
});

test('what cannot be held costs the answer, not the events', async () => {
  const trial = await MooncakeTrial.startHolding('a', { maxHeldBytes: 1000 });
  const { master, source } = trial;
  const { complete } = source.metrics.reconciliations;
  let asked = 0;
  master.beforeAnswer = async () => {
    if (++asked > 1) return;
    const before = source.metrics.messages;
    for (let index = 0; index < 10; index++) await master.put(`n${index}`);
    await trial.taken(before + 10);
  };
  master.lose(1);
  await master.put('b');
  await trial.reconciled(complete);
  expect(source.metrics.brokenHolds).toBe(1);
  trial.expectAsMaster();
  expect(trial.held()).toHaveLength(12);
});

test('what the master cannot be asked about is given up after a loss, and only then', async () => {
  const trial = await MooncakeTrial.start();
  const { master, source } = trial;
  await master.publish(
    master.event('stored', 'a'),
    master.event('stored', 'with,comma'),
    master.event('stored', 'a', { tenant_id: 't1' }),
  );
  master.held.set('a', new Set(['cpu']));
  await trial.until(() => trial.held('t1').length === 1);
  expect(trial.held()).toHaveLength(2);
  await trial.settled();
  const { complete } = source.metrics.reconciliations;
  master.lose(1);
  await master.publish(master.event('stored', 'a'));
  await trial.reconciled(complete);
  expect([trial.held(), trial.held('t1')]).toEqual([['a cpu'], []]);
});

test('without a master a gap gives up everything, and the stream goes on', async () => {
  const trial = await MooncakeTrial.start({ hasMaster: false });
  const { master, source } = trial;
  await master.publish(master.event('stored', 'a'), master.event('stored', 'b'));
  await trial.taken(1);
  expect(source.reading().notices).toEqual([]);
  master.lose(2);
  await master.publish(master.event('stored', 'c'));
  await trial.taken(2);
  expect(trial.told).toEqual(['+a cpu', '+b cpu', 'x default invalidated', '+c cpu']);
  expect(source.isSuspect).toBe(false);
  expect(source.reading().notices).toHaveLength(1);
});

test('an event that cannot be read, or a message, makes what is held suspect', async () => {
  const trial = await MooncakeTrial.start({ hasMaster: false });
  const { master, source } = trial;
  await master.publish(master.event('stored', 'a'));
  await master.publish({ ...master.event('removed', 'a'), medium: 'tape' });
  await master.publish(master.event('stored', 'b'));
  await master.publish({ ...master.event('stored', 'c'), event_type: 'touched' });
  await trial.taken(4);
  expect(trial.held()).toEqual(['b cpu']);
  expect(source.metrics.droppedEvents).toMatchObject({ bad_field: 1, unknown_type: 1 });
});

test('an event left out may have taken away what the same message has brought', async () => {
  const trial = await MooncakeTrial.start({ hasMaster: false });
  const { master } = trial;
  const garbled = { ...master.event('removed', 'a'), medium: 'tape', event_id: 9 };
  await master.publish(master.event('stored', 'a'), garbled);
  await trial.taken(1);
  expect(trial.held()).toEqual([]);
});

test('a master that does not answer: suspect, tried again, and given up after some attempts', async () => {
  const trial = await MooncakeTrial.startHolding('a');
  const { master, source } = trial;
  const { complete } = source.metrics.reconciliations;
  master.isStandby = true;
  master.lose(1);
  await master.put('b');
  await trial.until(() => source.metrics.reconciliations.failed >= 2);
  expect(source.isSuspect).toBe(true);
  expect(trial.held()).toHaveLength(2);
  await trial.until(() => trial.told.includes('x default invalidated'));
  master.isStandby = false;
  await trial.reconciled(complete);
  trial.expectAsMaster();
});

test('one question that fails is put again, and the comparison goes on', async () => {
  const trial = await MooncakeTrial.startHolding('a');
  const { master, source } = trial;
  const { complete } = source.metrics.reconciliations;
  master.beforeAnswer = () => {
    master.isStandby = !master.isStandby;
  };
  master.lose(1);
  await master.put('b');
  await trial.reconciled(complete);
  expect(source.metrics.reconciliations.failed).toBe(0);
  trial.expectAsMaster();
});

test('objects that go without an event are found by the slow comparison', async () => {
  const trial = await MooncakeTrial.start({ reconcileSeconds: 1 });
  const { master } = trial;
  for (const key of ['a', 'b', 'c']) await master.put(key);
  await trial.until(() => trial.held().length === 3);
  master.held.delete('a');
  master.held.delete('b');
  await trial.until(() => trial.held().length === 1);
  trial.expectAsMaster();
});
