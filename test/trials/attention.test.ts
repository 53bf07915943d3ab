/** Trials of attention groups: hybrid models, windows, and streams of which nothing can be used. */
import { expect, test } from 'vitest';
import { SocketTrial } from '../support/socket-trial.ts';
import { f, message, positional, Rm, St, Trial } from '../support/trials.ts';

const FULL = { kind: 'full_attention' };
const WINDOW = { kind: 'sliding_window' };

test('A1: a sliding-window group is filtered with its reason and takes no id', () => {
  const trial = new Trial();
  const events = [
    St(101, { group: 0, ...FULL }),
    St(101, { group: 1, ...WINDOW }),
    St(102, { parent: 101, group: 0 }),
  ];
  expect(trial.send(f(0, events))).toEqual(['S#1(∅→101,102)']);
  expect(trial.metrics.filtered.stored.non_main_attention_kind).toBe(1);
  expect(trial.send(f(1, [St(103, { parent: 102, group: 0 })]))).toEqual(['S#2(102→103)']);
  expect(trial.metrics.droppedEvents).toBe(0);
});

test('A1: full, MLA and sink-full attention pass, every other kind is filtered', () => {
  const trial = new Trial();
  const main = ['full_attention', 'mla_attention', 'sink_full_attention'];
  for (const [index, kind] of main.entries()) {
    expect(trial.send(f(index, [St(101 + index, { kind })]))).toHaveLength(1);
  }
  const others = [
    'sliding_window',
    'sliding_window_mla',
    'mamba',
    'chunked_local_attention',
    'encoder_only_attention',
    'cross_attention',
  ];
  for (const kind of others) expect(trial.send(f(9, [St(201, { kind })]))).toEqual([]);
  expect(trial.metrics.filtered.stored.non_main_attention_kind).toBe(others.length);
  expect(trial.send(f(10, [St(202, { kind: 'of_tomorrow' })]))).toEqual([]);
  expect(trial.metrics.filtered.stored.unknown_kind).toBe(1);
});

test('A2: the main group is learned, whatever its number; unlearned ones but 0 are filtered', () => {
  const trial = new Trial();
  expect(trial.send(f(0, [Rm(55, { group: 1 })]))).toEqual([]);
  expect(trial.metrics.filtered.removed.unlearned_group_idx).toBe(1);
  expect(trial.send(f(1, [St(101, { group: 1, ...FULL })]))).toEqual(['S#1(∅→101)']);
  expect(trial.send(f(2, [Rm(101, { group: 1 })]))).toEqual(['R#2(101)']);
  expect(trial.send(f(3, [St(9, { group: 0, ...WINDOW })]))).toEqual([]);
  expect(trial.send(f(4, [Rm(9, { group: 0 })]))).toEqual([]);
  expect(trial.metrics.filtered.stored.non_main_attention_kind).toBe(1);
  expect(trial.metrics.filtered.removed.non_main_attention_group).toBe(1);
});

test('A2: group 0 passes before anything is known of it', () => {
  const trial = new Trial();
  expect(trial.send(f(0, [Rm(55, { group: 0 })]))).toEqual(['R#1(55)']);
  expect(trial.send(f(1, [St(101, { group: 0 })]))).toEqual(['S#2(∅→101)']);
});

test.each([
  ['of three', 12],
  ['of five', 14],
])('A4: a window in a full tail %s is read, and never reaches the tree', (_, length) => {
  const trial = new Trial();
  const windowed = { ...St(101, { group: 2, ...WINDOW }), kv_cache_spec_sliding_window: 512 };
  const main = { ...St(101, { group: 0, ...FULL }), kv_cache_spec_sliding_window: null };
  expect(trial.send(f(0, [positional(windowed, length)]))).toEqual([]);
  expect(trial.metrics.filtered.stored.non_main_attention_kind).toBe(1);
  expect(trial.send(f(1, [positional(main, length)]))).toEqual(['S#1(∅→101)']);
  expect(trial.send(f(2, [positional(Rm(101, { group: 2 }), 4)]))).toEqual([]);
  expect(trial.metrics.filtered.removed.non_main_attention_group).toBe(1);
  expect(trial.send(f(3, [positional(Rm(101, { group: 0 }), 4)]))).toEqual(['R#2(101)']);
});

test('A4: in the short tail, which has the group alone, only the main group passes', () => {
  const trial = new Trial();
  expect(trial.send(f(0, [positional(St(101, { group: 2 }), 10)]))).toEqual([]);
  expect(trial.metrics.filtered.stored.unlearned_group_idx).toBe(1);
  expect(trial.send(f(1, [positional(St(101, { group: 0 }), 10)]))).toEqual(['S#1(∅→101)']);
});

test('A6: status tells no connection, no batch, nothing but filtered ones, and a flow apart', async () => {
  const trial = await SocketTrial.start({ engines: 0 });
  expect(trial.rank().state).toBe('connecting');
  expect((await trial.get('/health/ready')).status).toBe(503);

  await trial.startEngine();
  await trial.until(() => trial.rank().state !== 'connecting');
  expect(trial.rank()).toMatchObject({ state: 'idle', engine: { last_seq: null } });
  expect((await trial.get('/health/ready')).status).toBe(200);

  for (const sequence of [0, 1, 2]) await trial.send(f(sequence, [St(101, { ...WINDOW })]));
  await trial.until(() => trial.rank().counters.filtered === 3);
  expect(trial.rank().state).toBe('filtered_only');
  expect(trial.rank().filtered_by_reason).toEqual({ non_main_attention_kind: 3 });
  expect(trial.rank().degraded.map(({ code }) => code)).toEqual(['filtered_only']);
  expect((await trial.get('/health/ready')).status).toBe(200);

  await trial.send(f(3, [St(102)]));
  expect(await trial.output(1)).toEqual(['S#1(∅→102)']);
  expect(trial.rank()).toMatchObject({ state: 'flowing', degraded: [] });
  expect((await trial.get('/health/ready')).status).toBe(200);
});

test('A8: what one rank has learned is not used for another', async () => {
  const trial = await SocketTrial.start({
    ranks: 2,
    engines: 1,
    flags: ['--engine-sockets', 'shared'],
  });
  await trial.send(f(0, [St(1, { group: 1, ...FULL })], { rank: 0 }));
  await trial.send(f(1, [Rm(1, { group: 1 })], { rank: 1 }));
  await trial.send(f(2, [Rm(1, { group: 1 })], { rank: 0 }));
  expect(await trial.output(2)).toEqual(['S#1(∅→1)', 'R#2(1)']);
  expect(trial.rank(1).filtered_by_reason).toEqual({ unlearned_group_idx: 1 });
  expect(trial.rank(0).filtered_by_reason).toEqual({});
  await trial.send(f(3, [St(2)], { rank: 1 }));
  expect(await trial.output(1, 1)).toEqual(['r1:S#1(∅→2)']);
});

test('A8: nor where both come through one pipeline', () => {
  const trial = new Trial();
  const learn = (hash: number, rank: number): string[] =>
    trial.send(f(0, [St(hash, { group: hash, ...FULL })], { rank }));
  const remove = (hash: number, rank: number): string[] =>
    trial.send(f(0, [Rm(hash, { group: hash })], { rank }));
  expect([learn(1, 0), remove(1, 1), remove(1, 0)]).toEqual([['S#1(∅→1)'], [], ['R#2(1)']]);
  expect([learn(2, 1), remove(2, 0), remove(2, 1)]).toEqual([['r1:S#3(∅→2)'], [], ['r1:R#4(2)']]);
  expect(trial.metrics.filtered.removed.unlearned_group_idx).toBe(2);
});

test('A6: on a shared socket each rank has a state of its own', async () => {
  const flags = ['--engine-sockets', 'shared'];
  const trial = await SocketTrial.start({ ranks: 2, engines: 1, flags });
  await trial.send(f(0, [St(101)], { rank: 1 }));
  expect(await trial.output(1, 1)).toEqual(['r1:S#1(∅→101)']);
  expect([trial.rank(0).state, trial.rank(1).state]).toEqual(['idle', 'flowing']);
});

test('A6: a rank that only foreign batches reach does not flow', async () => {
  const trial = await SocketTrial.start();
  await trial.send(f(0, [St(101)], { rank: 5 }));
  await trial.send(message(1, Buffer.of(0xc1)));
  await trial.until(() => trial.rank().counters.malformed === 1);
  expect(trial.rank().state).not.toBe('flowing');
});
