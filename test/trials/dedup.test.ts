/** Trials of repeats, order and merging. */
import { expect, test } from 'vitest';
import { A, B, C, f, Rm, St, Trial, tokensHash } from '../support/trials.ts';

const CPU = { medium: 'CPU' };

/** `count` blocks from 101 on, each an event of its own under the one before. */
function chainOf(count: number): ReturnType<typeof St>[] {
  return Array.from({ length: count }, (_, index) =>
    St(101 + index, index === 0 ? {} : { parent: 100 + index }),
  );
}

function numbersFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}

test('D1: every store passes, a remove only when the last copy goes', () => {
  const trial = new Trial();
  expect(trial.send(f(0, [St(101), St(101)]))).toEqual(['S#1(∅→101)', 'S#2(∅→101)']);
  expect(trial.send(f(1, [Rm(101)]))).toEqual([]);
  expect(trial.index).toEqual(['101']);
  expect(trial.send(f(2, [Rm(101)]))).toEqual(['R#3(101)']);
  expect(trial.index).toEqual([]);
  expect(trial.metrics.suppressedRemoves).toBe(1);
});

test('D2: a count of remaining copies in a remove changes nothing', () => {
  const trial = new Trial();
  trial.send(f(0, [St(101), St(101)]));
  const counted = { ...Rm(101), remaining_copy_counts: [1] };
  expect(trial.send(f(1, [counted]))).toEqual([]);
  expect(trial.send(f(2, [{ ...counted, remaining_copy_counts: [0] }]))).toEqual(['R#3(101)']);
});

test('D3: copies are counted on every tier, each apart', () => {
  const trial = new Trial();
  trial.send(f(0, [St(101)]));
  expect(trial.send(f(1, [St(101, CPU)]), f(2, [St([101, 102], CPU)]))).toEqual([
    'S#2(∅→101)@host_pinned',
    'S#3(∅→101,102)@host_pinned',
  ]);
  expect(trial.send(f(3, [Rm(101, CPU)]))).toEqual([]);
  expect(trial.index).toEqual(['101', '101@host_pinned', '102@host_pinned']);
  expect(trial.send(f(4, [Rm(101, CPU)]))).toEqual(['R#4(101)@host_pinned']);
  expect(trial.index).toEqual(['101', '102@host_pinned']);
  expect(trial.send(f(5, [Rm(101)]))).toEqual(['R#5(101)']);
});

test('D5: the order inside a batch is kept', () => {
  const trial = new Trial();
  expect(trial.send(f(0, [St(101)]))).toEqual(['S#1(∅→101)']);
  const batch = f(1, [Rm(101), St(101), Rm(101)]);
  expect(trial.send(batch)).toEqual(['R#2(101)', 'S#3(∅→101)', 'R#4(101)']);
  expect(trial.index).toEqual([]);
});

test('D6: fifty removes of one block each leave as one', () => {
  const trial = new Trial();
  expect(trial.send(f(0, chainOf(50)))).toEqual([`S#1(∅→${numbersFrom(101, 50).join()})`]);
  const leafFirst = numbersFrom(101, 50).reverse();
  const removes = leafFirst.map((hash) => Rm(hash));
  expect(trial.send(f(1, removes))).toEqual([`R#2(${leafFirst.join()})`]);
  expect(trial.payloads).toHaveLength(2);
});

test('D6: the cap is 128 blocks, looked at after a whole event', () => {
  const trial = new Trial();
  const removes = numbersFrom(101, 130).map((hash) => Rm(hash));
  expect(trial.send(f(0, removes))).toEqual([
    `R#1(${numbersFrom(101, 128).join()})`,
    'R#2(229,230)',
  ]);
  const large = [Rm(numbersFrom(101, 100)), Rm(numbersFrom(201, 100)), Rm(999)];
  expect(trial.send(f(1, large))).toEqual([`R#3(${numbersFrom(101, 200).join()})`, 'R#4(999)']);
});

test('D8: events of two tiers, ranks or kinds are not merged', () => {
  const trial = new Trial();
  const tiers = f(0, [St(101), St(102, { parent: 101, ...CPU })]);
  expect(trial.send(tiers)).toEqual(['S#1(∅→101)', 'S#2(101→102)@host_pinned']);
  const removes = f(1, [Rm(101), Rm(102, CPU)]);
  expect(trial.send(removes)).toEqual(['R#3(101)', 'R#4(102)@host_pinned']);
  const kinds = f(2, [St(103), Rm(103), St(104, { parent: 103 })]);
  expect(trial.send(kinds)).toEqual(['S#5(∅→103)', 'R#6(103)', 'S#7(103→104)']);
  const brokenChain = f(3, [St(105), St(106, { parent: 999 })]);
  expect(trial.send(brokenChain)).toEqual(['S#8(∅→105)', 'S#9(999→106)']);

  const timed = new Trial({ batchingTimeoutMs: 50 });
  timed.send(f(0, [St(101)]));
  timed.send(f(1, [St(102, { parent: 101 })], { rank: 1 }));
  expect(timed.advance(50)).toEqual(['r1:S#2(101→102)']);
});

test('D8: adapter and salt need no barrier, as each block is hashed before', () => {
  const trial = new Trial();
  const [published, ...others] = trial.events(
    f(0, [
      St(101, { tokens: A, lora: 'x' }),
      St(102, { parent: 101, tokens: B }),
      St(103, { parent: 102, tokens: C, salt: 't1' }),
    ]),
  );
  expect(others).toEqual([]);
  expect(published?.blocks.map((block) => block.tokensHash)).toEqual([
    tokensHash(St(1, { tokens: A, lora: 'x' })),
    tokensHash(St(1, { tokens: B })),
    tokensHash(St(1, { tokens: C, salt: 't1' })),
  ]);
});

test('D9: the blocks of a store chain in the order listed, under one parent', () => {
  const trial = new Trial();
  const store = St([103, 101, 102], { parent: 77, tokens: [...C, ...A, ...B] });
  const [published] = trial.events(f(0, [store]));
  expect(published).toMatchObject({ parent: 77n, hashes: [103n, 101n, 102n] });
  expect(published?.blocks.map((block) => block.tokensHash)).toEqual(
    [C, A, B].map((tokens) => tokensHash(St(1, { tokens }))),
  );
});

test('D11: a store that names a block twice has no effect but to break a chain', () => {
  const trial = new Trial();
  const loops = [St(101, { parent: 101 }), St([101, 101]), St([101, 102, 101])];
  expect(trial.send(f(0, [...loops, St(105)]))).toEqual(['S#1(∅→105)']);
  expect(trial.metrics.accepted.stored).toBe(4);
  expect(trial.index).toEqual(['105']);

  const between = f(1, [St(201), St([202, 202], { parent: 201 }), St(203, { parent: 201 })]);
  expect(trial.send(between)).toEqual(['S#2(∅→201)', 'S#3(201→203)']);
  expect(trial.metrics.cleared.engine).toBe(0);
});

test('D13: nothing pends longer than the timeout, and an idle stream flushes', () => {
  const trial = new Trial({ batchingTimeoutMs: 50 });
  expect(trial.send(f(0, [St(101)]))).toEqual([]);
  expect(trial.advance(49)).toEqual([]);
  expect(trial.advance(1)).toEqual(['S#1(∅→101)']);
  expect(trial.advance(10_000)).toEqual([]);
  // After a pause the last flush is long ago, so the next one waits for nothing.
  expect(trial.send(f(1, [St(102, { parent: 101 })]))).toEqual(['S#2(101→102)']);
});

test('D13: with a store every 20 ms there is an output at least every 50 ms', () => {
  const trial = new Trial({ batchingTimeoutMs: 50 });
  const outputsAtMs: number[] = [];
  let published = 0;
  for (let nowMs = 0; nowMs < 1000; nowMs++) {
    const sequence = nowMs / 20;
    const isDue = Number.isInteger(sequence);
    const parent = sequence === 0 ? {} : { parent: 100 + sequence };
    const sent = isDue ? trial.send(f(sequence, [St(101 + sequence, parent)])) : [];
    const count = sent.length + trial.advance(1).length;
    published += count;
    if (count > 0) outputsAtMs.push(nowMs + 1);
  }
  const pauses = outputsAtMs.map((atMs, index) => atMs - (outputsAtMs[index - 1] ?? 0));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(50);
  // Merged, not passed on one by one.
  expect(published).toBeLessThanOrEqual(25);
  trial.advance(50);
  expect(trial.index).toHaveLength(50);
});
